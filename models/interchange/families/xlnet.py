"""XLNet in transformers 5.23, ``modeling_xlnet.py`` and ``configuration_xlnet.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings, dense, norm, table

LONGEST = 512  # tokens of a row in their pre-training; the network itself has no limit


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network; theirs have an axis for heads."""
    width, inner, heads = (settings[key] for key in ("hidden_dim", "intermediate_dim", "num_heads"))
    by_head = (heads, width // heads)
    yield Link("transformer.mask_emb", "network/mask_embedding", (1, 1, width), as_ours=(width,))
    yield table(
        "transformer.word_embedding", "network/embeddings/token", settings["vocabulary_size"], width
    )
    for number in range(settings["num_layers"]):
        theirs, ours = f"transformer.layer.{number}.", f"network/block_{number}/"
        there, here = f"{theirs}rel_attn.", f"{ours}attention/"
        for letter, name in zip("qkvr", ("query", "key", "value", "relative"), strict=True):
            kernel = f"{here}{name}/kernel"
            yield Link(f"{there}{letter}", kernel, (width, *by_head), as_ours=(width, width))
        yield Link(
            f"{there}o",
            f"{here}output/kernel",
            (width, *by_head),
            transposed=True,
            as_ours=(width, width),
        )
        yield Link(f"{there}r_w_bias", f"{here}biases/content_bias", by_head)
        yield Link(f"{there}r_r_bias", f"{here}biases/position_bias", by_head)
        yield Link(f"{there}r_s_bias", f"{here}segment_bias", by_head)
        yield Link(f"{there}seg_embed", f"{here}segment_vectors", (2, *by_head))
        yield from norm(f"{there}layer_norm", f"{ours}attention_norm", width)
        yield from dense(f"{theirs}ff.layer_1", f"{ours}intermediate", width, inner)
        yield from dense(f"{theirs}ff.layer_2", f"{ours}output", inner, width)
        yield from norm(f"{theirs}ff.layer_norm", f"{ours}output_norm", width)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}."""
    width, classifier = settings["hidden_dim"], "sequence_classification/"
    bias = (settings["vocabulary_size"],)
    return {
        "permutation_lm": [Link("lm_loss.bias", "permutation_lm/output_bias", bias)],
        "sequence_classification": [
            *dense("sequence_summary.summary", f"{classifier}pooler", width, width),
            *dense("logits_proj", f"{classifier}output", width, num_labels),
        ],
    }


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """Lengths; theirs are null or -1 where there is no memory or no limit."""
    for key, argument, default in (
        ("mem_len", "memory_length", 512),
        ("clamp_len", "clamp_length", -1),
    ):
        value = config.get(key, default)
        value = 0 if value in (None, -1) else value
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 20:
            raise RecipeError(f"{key}: expected a number of tokens, got {str(value)[:80]}")
        settings[argument] = value
    settings["max_sequence_length"] = LONGEST


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """The inverse of `read`."""
    config["mem_len"] = settings["memory_length"] or None
    config["clamp_len"] = settings["clamp_length"] or -1
    config["summary_last_dropout"] = settings["dropout"]


ARCHITECTURE = Architecture(
    model_type="xlnet",
    their_prefix="transformer",
    classes={
        "XLNetModel": (),
        "XLNetLMHeadModel": ("permutation_lm",),
        "XLNetForSequenceClassification": ("sequence_classification",),
    },
    arguments={
        "vocab_size": ("vocabulary_size", 32000),
        "d_model": ("hidden_dim", 1024),
        "n_layer": ("num_layers", 24),
        "n_head": ("num_heads", 16),
        "d_inner": ("intermediate_dim", 4096),
        "ff_activation": ("activation", "gelu"),
        "dropout": ("dropout", 0.1),
        "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
    },
    network=network,
    heads=heads,
    copies={"lm_loss.weight": "transformer.word_embedding.weight"},
    demanded={
        "attn_type": "bi",
        "bi_data": False,
        "same_length": False,
        "summary_type": "last",
        "summary_use_proj": True,
        "summary_activation": "tanh",
        "tie_word_embeddings": True,
    },
    read=read,
    write=write,
    attention_dropout="dropout",
    pad_id=5,
    reads_segments=True,
    padding_side="left",
)
