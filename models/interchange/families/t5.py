"""T5 in transformers 5.23, ``modeling_t5.py`` and ``configuration_t5.py``.

Their class ties the output matrix to the token table whatever the configuration says;
``tie_word_embeddings: false`` only leaves the factor 1/√D out. Files of version 1.1 have both
matrices, and where these differ their class keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError, UnknownNameError
from models.interchange.architecture import (
    ACTIVATIONS,
    THEIR_ACTIVATION,
    Architecture,
    Link,
    Settings,
)

GATED = "gated-"


def kernel(theirs: str, ours: str, inputs: int, outputs: int) -> Link:
    """A dense layer without a bias."""
    return Link(f"{theirs}.weight", f"{ours}/kernel", (outputs, inputs), transposed=True)


def scale(theirs: str, ours: str, width: int) -> Link:
    """The only tensor of a norm."""
    return Link(f"{theirs}.weight", f"{ours}/scale", (width,))


def attention(theirs: str, ours: str, settings: Settings) -> Iterator[Link]:
    """The four projections of an attention."""
    width, inner = settings["hidden_dim"], settings["num_heads"] * settings["head_dim"]
    for their_name, name in (("q", "query"), ("k", "key"), ("v", "value")):
        yield kernel(f"{theirs}.{their_name}", f"{ours}/{name}", width, inner)
    yield kernel(f"{theirs}.o", f"{ours}/output", inner, width)


def block(theirs: str, ours: str, settings: Settings, decodes: bool) -> Iterator[Link]:
    """One block: two layers of theirs, in the decoder three."""
    width, inner = settings["hidden_dim"], settings["intermediate_dim"]
    yield from attention(f"{theirs}.layer.0.SelfAttention", f"{ours}/attention", settings)
    yield scale(f"{theirs}.layer.0.layer_norm", f"{ours}/attention_norm", width)
    if decodes:
        cross = f"{theirs}.layer.1.EncDecAttention"
        yield from attention(cross, f"{ours}/cross_attention", settings)
        yield scale(f"{theirs}.layer.1.layer_norm", f"{ours}/cross_norm", width)
    last = f"{theirs}.layer.{2 if decodes else 1}"
    names = (
        {"wi_0": "intermediate", "wi_1": "gate"} if settings["gated"] else {"wi": "intermediate"}
    )
    for their_name, name in names.items():
        yield kernel(f"{last}.DenseReluDense.{their_name}", f"{ours}/{name}", width, inner)
    yield kernel(f"{last}.DenseReluDense.wo", f"{ours}/output", inner, width)
    yield scale(f"{last}.layer_norm", f"{ours}/output_norm", width)


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network; the relative positions are in the first block of each side."""
    width, rows = settings["hidden_dim"], settings["vocabulary_size"]
    yield Link("shared.weight", "network/embeddings/token/embeddings", (rows, width))
    first = settings["num_layers"]
    for side, number, before, ours in (
        ("encoder", first, 0, ""),
        ("decoder", settings["num_decoder_layers"], first, "decoder_"),
    ):
        yield Link(
            f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
            f"network/{ours}relative_bias/table",
            (settings["num_buckets"], settings["num_heads"]),
        )
        for i in range(number):
            theirs, own = f"{side}.block.{i}", f"network/block_{before + i}"
            yield from block(theirs, own, settings, decodes=side == "decoder")
    yield scale("encoder.final_layer_norm", "network/final_norm", width)
    yield scale("decoder.final_layer_norm", "network/decoder_norm", width)
    if not settings["tied_output"]:
        yield Link("lm_head.weight", "network/output_table", (rows, width))


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}: the network itself makes the predictions."""
    return {"span_denoising": []}


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """The decoder's depth, the feed-forward network's kind, and which matrix predicts.

    Refuse a target that begins otherwise than ours.
    """
    layers = config.get("num_decoder_layers") or settings["num_layers"]
    if isinstance(layers, bool) or not isinstance(layers, int) or not 1 <= layers <= 1000:
        raise RecipeError(f"num_decoder_layers: expected 1 to 1000, got {str(layers)[:80]}")
    said = str(config.get("feed_forward_proj", "relu"))
    name = said.removeprefix(GATED)
    if name not in ACTIVATIONS:
        raise UnknownNameError("feed_forward_proj", name, "an activation", ACTIVATIONS)
    scaled = config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True))
    settings |= {
        "num_decoder_layers": layers,
        "gated": said != name,
        # Theirs says gated-gelu and computes the tanh variant.
        "activation": "gelu_tanh" if said == f"{GATED}gelu" else ACTIVATIONS[name],
        "tied_output": scaled is not False,
    }
    begin = config.get("decoder_start_token_id", pad_id)
    if begin != pad_id:
        raise RecipeError(
            f"decoder_start_token_id: expected {pad_id}, the id of padding, got {str(begin)[:80]};"
            " our t5 begins every target with padding"
        )


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """The inverse of `read`; a target begins with padding."""
    activation = THEIR_ACTIVATION[settings["activation"]]
    if settings["gated"]:
        if activation == "gelu":
            raise RecipeError(
                "activation: their gated t5 has gelu_tanh under the name of gelu, and no gelu;"
                " train with size.activation: gelu_tanh"
            )
        activation = GATED + ("gelu" if activation == "gelu_new" else activation)
    config |= {
        "num_decoder_layers": settings["num_decoder_layers"],
        "feed_forward_proj": activation,
        "tie_word_embeddings": settings["tied_output"],
        "decoder_start_token_id": pad_id,
        "is_encoder_decoder": True,
    }


ARCHITECTURE = Architecture(
    model_type="t5",
    their_prefix="",
    classes={"T5Model": (), "T5ForConditionalGeneration": ("span_denoising",)},
    arguments={
        "vocab_size": ("vocabulary_size", 32128),
        "d_model": ("hidden_dim", 512),
        "d_kv": ("head_dim", 64),
        "d_ff": ("intermediate_dim", 2048),
        "num_layers": ("num_layers", 6),
        "num_heads": ("num_heads", 8),
        "n_positions": ("max_sequence_length", 512),
        "relative_attention_num_buckets": ("num_buckets", 32),
        "relative_attention_max_distance": ("max_distance", 128),
        "dropout_rate": ("dropout", 0.1),
        "layer_norm_epsilon": ("layer_norm_epsilon", 1e-6),
    },
    network=network,
    heads=heads,
    copies={
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
        "lm_head.weight": "shared.weight",
    },
    demanded={"is_decoder": False},
    read=read,
    write=write,
    # Of the published files, without use.
    ignored=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    attention_dropout="dropout_rate",
    special_ids={"eos_token_id": "sep"},
)
