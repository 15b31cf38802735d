"""BERT in transformers 5.23, ``modeling_bert.py`` and ``configuration_bert.py``."""

from __future__ import annotations

from collections.abc import Iterator

from models.interchange.architecture import Architecture, Link, Settings
from models.interchange.bert_names import (
    ARGUMENTS,
    DEMANDED,
    bert_heads,
    blocks,
    embeddings_norm,
    pooler,
    segments,
    tables,
)


def network(settings: Settings, pad_id: int) -> Iterator[Link]:
    """All tensors of the network."""
    yield from tables("bert", settings)
    yield segments("bert", settings)
    yield from embeddings_norm("bert", settings)
    yield from blocks("bert", settings)
    yield from pooler("bert.pooler.dense", settings)


ARCHITECTURE = Architecture(
    model_type="bert",
    classes={
        "BertModel": (),
        "BertForMaskedLM": ("masked_lm",),
        "BertForNextSentencePrediction": ("next_sentence",),
        "BertForPreTraining": ("masked_lm", "next_sentence"),
        "BertForSequenceClassification": ("sequence_classification",),
    },
    arguments=ARGUMENTS,
    network=network,
    heads=bert_heads,
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    demanded=DEMANDED,
    fixed={"norm_first": False},
)
