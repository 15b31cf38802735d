"""RoBERTa in transformers 5.23, ``modeling_roberta.py`` and ``configuration_roberta.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings, table
from models.interchange.bert_names import (
    ARGUMENTS,
    DEMANDED,
    blocks,
    embeddings_norm,
    masked_lm,
    tables,
)


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network.

    Their positions start at the padding id + 1; the rows before it are unused. Of their segment
    table, ours has only the first row: all tokens are in segment 0.
    """
    yield from tables("roberta", settings, positions_before=pad_id + 1)
    theirs = "roberta.embeddings.token_type_embeddings"
    yield table(theirs, "network/embeddings/segment", None, settings["hidden_dim"], rows=1)
    yield from embeddings_norm("roberta", settings)
    yield from blocks("roberta", settings)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}."""
    names = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
    return {"masked_lm": masked_lm(*names, settings)}


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """Do not count the unused rows of their position table."""
    settings["max_sequence_length"] -= pad_id + 1
    if settings["max_sequence_length"] < 1:
        raise RecipeError("max_position_embeddings leaves no position after padding")


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """Add the unused rows of the position table; there is one segment."""
    config["max_position_embeddings"] += pad_id + 1
    config["type_vocab_size"] = 1


ARCHITECTURE = Architecture(
    model_type="roberta",
    classes={"RobertaModel": (), "RobertaForMaskedLM": ("masked_lm",)},
    arguments={
        **{key: value for key, value in ARGUMENTS.items() if key != "type_vocab_size"},
        "vocab_size": ("vocabulary_size", 50265),
    },
    network=network,
    heads=heads,
    copies={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    demanded=DEMANDED,
    read=read,
    write=write,
    ignored=("roberta.pooler.",),
    head_activation="gelu",
    pad_id=1,
)
