"""Hugging Face's names of settings and tensors of BERT and networks modelled on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.interchange.architecture import Link, Settings, dense, norm, table

ARGUMENTS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocabulary_size", 30522),
    "hidden_size": ("hidden_dim", 768),
    "num_hidden_layers": ("num_layers", 12),
    "num_attention_heads": ("num_heads", 12),
    "intermediate_size": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_sequence_length", 512),
    "type_vocab_size": ("num_segments", 2),
    "hidden_act": ("activation", "gelu"),
    "hidden_dropout_prob": ("dropout", 0.1),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
}
DEMANDED = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
}


def width_of_tables(settings: Settings) -> int:
    """Width of the embeddings, which may differ from that of the blocks."""
    return settings.get("embedding_dim", settings["hidden_dim"])


def tables(prefix: str, settings: Settings, positions_before: int = 0) -> Iterator[Link]:
    """The token table and the position table.

    Args:
        prefix: Prefix of the tensors' names.
        settings: The network's settings.
        positions_before: Number of unused rows at the start of their position table.
    """
    width, theirs = width_of_tables(settings), f"{prefix}.embeddings."
    rows = settings["max_sequence_length"] + positions_before
    yield table(
        f"{theirs}word_embeddings", "network/embeddings/token", settings["vocabulary_size"], width
    )
    yield table(
        f"{theirs}position_embeddings",
        "network/embeddings/position",
        rows,
        width,
        rows_before=positions_before,
    )


def embeddings_norm(prefix: str, settings: Settings) -> Iterator[Link]:
    """The LayerNorm of the embeddings."""
    theirs = f"{prefix}.embeddings.LayerNorm"
    return norm(theirs, "network/embeddings/norm", width_of_tables(settings))


def segments(prefix: str, settings: Settings) -> Link:
    """The segment table."""
    theirs = f"{prefix}.embeddings.token_type_embeddings"
    rows, width = settings["num_segments"], width_of_tables(settings)
    return table(theirs, "network/embeddings/segment", rows, width)


def block(theirs: str, number: int, settings: Settings, under: str = "network/") -> Iterator[Link]:
    """One block, under BERT's names; ours is below `under`."""
    ours, width = f"{under}block_{number}/", settings["hidden_dim"]
    inner = settings["intermediate_dim"]
    for name in ("query", "key", "value"):
        yield from dense(f"{theirs}attention.self.{name}", f"{ours}attention/{name}", width, width)
    yield from dense(f"{theirs}attention.output.dense", f"{ours}attention/output", width, width)
    yield from norm(f"{theirs}attention.output.LayerNorm", f"{ours}attention_norm", width)
    yield from dense(f"{theirs}intermediate.dense", f"{ours}intermediate", width, inner)
    yield from dense(f"{theirs}output.dense", f"{ours}output", inner, width)
    yield from norm(f"{theirs}output.LayerNorm", f"{ours}output_norm", width)


def blocks(prefix: str, settings: Settings) -> Iterator[Link]:
    """All blocks."""
    for number in range(settings["num_layers"]):
        yield from block(f"{prefix}.encoder.layer.{number}.", number, settings)


def pooler(theirs: str, settings: Settings) -> Iterator[Link]:
    """The pooler: the dense layer on the first position."""
    width = settings["hidden_dim"]
    return dense(theirs, "network/pooler", width, width, optional=True)


def masked_lm(theirs: str, their_norm: str, bias: str, settings: Settings) -> list[Link]:
    """The masked-token head, without its output matrix, which is the token table."""
    width = width_of_tables(settings)
    return [
        *dense(theirs, "masked_lm/transform", settings["hidden_dim"], width),
        *norm(their_norm, "masked_lm/norm", width),
        Link(bias, "masked_lm/output_bias", (settings["vocabulary_size"],)),
    ]


def row_classes(theirs: str, head: str, classes: int, settings: Settings) -> list[Link]:
    """A head of one dense layer on the pooled vector."""
    return list(dense(theirs, f"{head}/output", settings["hidden_dim"], classes))


def masked_lm_alone(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}, of the masked-token head under BERT's names."""
    start = "cls.predictions."
    names = (f"{start}transform.dense", f"{start}transform.LayerNorm", f"{start}bias")
    return {"masked_lm": masked_lm(*names, settings)}


def bert_heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors} of BERT's heads."""
    return {
        **masked_lm_alone(settings, num_labels),
        "next_sentence": row_classes("cls.seq_relationship", "next_sentence", 2, settings),
        "sequence_classification": row_classes(
            "classifier", "sequence_classification", num_labels, settings
        ),
    }
