"""ELECTRA in transformers 5.23, ``modeling_electra.py`` and ``configuration_electra.py``."""

from __future__ import annotations

from collections.abc import Iterator

from models.interchange.architecture import Architecture, Link, Settings, dense
from models.interchange.bert_names import (
    ARGUMENTS,
    DEMANDED,
    blocks,
    embeddings_norm,
    masked_lm,
    segments,
    tables,
    width_of_tables,
)


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network, either generator or discriminator."""
    yield from tables("electra", settings)
    yield segments("electra", settings)
    yield from embeddings_norm("electra", settings)
    narrow, width = width_of_tables(settings), settings["hidden_dim"]
    if narrow != width:
        ours = "network/embedding_projection"
        yield from dense("electra.embeddings_project", ours, narrow, width)
    yield from blocks("electra", settings)


def heads(settings: Settings, num_labels: int) -> dict[str, list[Link]]:
    """{head: all its tensors}."""
    width = settings["hidden_dim"]
    start = "generator_predictions."
    bias = "generator_lm_head.bias"
    theirs, ours = "discriminator_predictions.dense", "replaced_token_detection/"
    return {
        "masked_lm": masked_lm(f"{start}dense", f"{start}LayerNorm", bias, settings),
        "replaced_token_detection": [
            *dense(theirs, f"{ours}transform", width, width),
            *dense(f"{theirs}_prediction", f"{ours}score", width, 1),
        ],
    }


ARCHITECTURE = Architecture(
    model_type="electra",
    classes={
        "ElectraModel": (),
        "ElectraForMaskedLM": ("masked_lm",),
        "ElectraForPreTraining": ("replaced_token_detection",),
    },
    arguments={
        **ARGUMENTS,
        "embedding_size": ("embedding_dim", 128),
        "hidden_size": ("hidden_dim", 256),
        "num_attention_heads": ("num_heads", 4),
        "intermediate_size": ("intermediate_dim", 1024),
    },
    network=network,
    heads=heads,
    copies={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
    demanded=DEMANDED,
    head_activation="gelu",
)
