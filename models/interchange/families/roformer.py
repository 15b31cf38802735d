"""RoFormer in transformers 5.23, ``modeling_roformer.py`` and ``configuration_roformer.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models.interchange.architecture import Architecture, Link, Settings, dense, table
from models.interchange.bert_names import (
    ARGUMENTS,
    DEMANDED,
    blocks,
    embeddings_norm,
    masked_lm_alone,
    segments,
)
from models.layers.sinusoids import cosines_and_sines


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    theirs, width = "roformer.embeddings.word_embeddings", settings["hidden_dim"]
    yield table(theirs, "network/embeddings/token", settings["vocabulary_size"], width)
    yield segments("roformer", settings)
    yield from embeddings_norm("roformer", settings)
    yield from blocks("roformer", settings)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}."""
    theirs, ours = "classifier.", "sequence_classification/"
    width = settings["hidden_dim"]
    return {
        **masked_lm_alone(settings, num_labels),
        "sequence_classification": [
            *dense(f"{theirs}dense", f"{ours}pooler", width, width),
            *dense(f"{theirs}out_proj", f"{ours}output", width, num_labels),
        ],
    }


def positions(settings: Settings) -> np.ndarray:
    """Their table of sines and cosines, (P, K)."""
    width = settings["hidden_dim"] // settings["num_heads"]
    cosines, sines = cosines_and_sines(settings["max_sequence_length"], width)
    return np.concatenate([sines, cosines], axis=1)


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """Refuse tables that are narrower than the blocks."""
    width = config.get("embedding_size") or settings["hidden_dim"]
    if width != settings["hidden_dim"]:
        raise RecipeError(
            f"embedding_size: expected {settings['hidden_dim']}, as wide as the blocks, got {width}"
        )


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """The inverse of `read`."""
    config["embedding_size"] = settings["hidden_dim"]


ARCHITECTURE = Architecture(
    model_type="roformer",
    classes={
        "RoFormerModel": (),
        "RoFormerForMaskedLM": ("masked_lm",),
        "RoFormerForSequenceClassification": ("sequence_classification",),
    },
    arguments={
        **ARGUMENTS,
        "vocab_size": ("vocabulary_size", 50000),
        "max_position_embeddings": ("max_sequence_length", 1536),
    },
    network=network,
    heads=heads,
    copies={
        "cls.predictions.decoder.weight": "roformer.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    demanded={**DEMANDED, "rotary_value": False},
    read=read,
    write=write,
    computed={"roformer.encoder.embed_positions.weight": positions},
    writes_computed=True,
)
