"""Hugging Face's names of settings and tensors of BART and networks modelled on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.architecture import Link, Settings, dense, norm

ARGUMENTS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocabulary_size", 50265),
    "d_model": ("hidden_dim", 1024),
    "encoder_layers": ("num_layers", 12),
    "decoder_layers": ("num_decoder_layers", 12),
    "encoder_attention_heads": ("num_heads", 16),
    "encoder_ffn_dim": ("intermediate_dim", 4096),
    "max_position_embeddings": ("max_sequence_length", 1024),
    "activation_function": ("activation", "gelu"),
    "dropout": ("dropout", 0.1),
}
# Keys of the decoder that must have the value of the encoder's.
ALIKE = {
    "decoder_attention_heads": "encoder_attention_heads",
    "decoder_ffn_dim": "encoder_ffn_dim",
}
COPIES = {
    "lm_head.weight": "model.shared.weight",
    "model.encoder.embed_tokens.weight": "model.shared.weight",
    "model.decoder.embed_tokens.weight": "model.shared.weight",
}
Dense = Callable[[str, str, int, int], Iterator[Link]]  # (theirs, ours, inputs, outputs)
Norm = Callable[[str, str, int], Iterator[Link]]  # (theirs, ours, width)


def check_alike(config: Mapping[str, Any], ours: str) -> None:
    """Refuse a decoder whose blocks are of another shape than the encoder's.

    Args:
        config: Their settings; one that is missing has their default.
        ours: Name of our family.

    Raises:
        RecipeError: A setting of the decoder differs from the encoder's.
    """
    for key, other in ALIKE.items():
        default = ARGUMENTS[other][1]
        said, wanted = config.get(key, default), config.get(other, default)
        if said != wanted:
            raise RecipeError(
                f"{key}: expected {str(wanted)[:80]}, as {other}, got {str(said)[:80]}; our {ours}"
                f" has one value for both, and a key that is missing means {default}"
            )


def blocks(
    side: str, settings: Settings, reads: Dense = dense, writes: Dense = dense, norm: Norm = norm
) -> Iterator[Link]:
    """The blocks of the ``encoder`` or the ``decoder``.

    Args:
        side: Which of them.
        settings: The network's settings.
        reads: Links a dense layer whose inputs are a token's vector.
        writes: Links one whose outputs are.
        norm: Links a LayerNorm.
    """
    decodes, width, inner = side == "decoder", settings["hidden_dim"], settings["intermediate_dim"]
    before = settings["num_layers"] if decodes else 0
    for number in range(settings["num_decoder_layers" if decodes else "num_layers"]):
        theirs, ours = f"model.{side}.layers.{number}.", f"network/block_{before + number}/"
        attentions = [("self_attn", "attention", "attention_norm")]
        attentions += [("encoder_attn", "cross_attention", "cross_norm")] if decodes else []
        for their_name, name, norm_name in attentions:
            attends = f"{theirs}{their_name}"
            for letter, layer in (("q", "query"), ("k", "key"), ("v", "value")):
                yield from reads(f"{attends}.{letter}_proj", f"{ours}{name}/{layer}", width, width)
            yield from writes(f"{attends}.out_proj", f"{ours}{name}/output", width, width)
            yield from norm(f"{attends}_layer_norm", f"{ours}{norm_name}", width)
        yield from reads(f"{theirs}fc1", f"{ours}intermediate", width, inner)
        yield from writes(f"{theirs}fc2", f"{ours}output", inner, width)
        yield from norm(f"{theirs}final_layer_norm", f"{ours}output_norm", width)
