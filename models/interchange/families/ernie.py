"""ERNIE (Baidu) in transformers 5.23, ``modeling_ernie.py`` and ``configuration_ernie.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models.interchange.architecture import Architecture, Link, Settings, table
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
    """All tensors of the network, with the task table if there is one."""
    yield from tables("ernie", settings)
    yield segments("ernie", settings)
    if tasks := settings["num_tasks"]:
        theirs = "ernie.embeddings.task_type_embeddings"
        yield table(theirs, "network/embeddings/task", tasks, settings["hidden_dim"])
    yield from embeddings_norm("ernie", settings)
    yield from blocks("ernie", settings)
    yield from pooler("ernie.pooler.dense", settings)


def read(settings: dict[str, Any], config: Mapping[str, Any], pad_id: int) -> None:
    """Ignore their number of tasks unless ``use_task_id`` is on."""
    if not config.get("use_task_id", False):
        settings["num_tasks"] = 0


def write(config: dict[str, Any], settings: Mapping[str, Any], pad_id: int) -> None:
    """Turn ``use_task_id`` on if there are tasks; their class has no number of them below 1."""
    config["use_task_id"] = bool(settings["num_tasks"])
    if not settings["num_tasks"]:
        del config["task_type_vocab_size"]


ARCHITECTURE = Architecture(
    model_type="ernie",
    classes={
        "ErnieModel": (),
        "ErnieForMaskedLM": ("masked_lm",),
        "ErnieForNextSentencePrediction": ("next_sentence",),
        "ErnieForPreTraining": ("masked_lm", "next_sentence"),
        "ErnieForSequenceClassification": ("sequence_classification",),
    },
    arguments={**ARGUMENTS, "task_type_vocab_size": ("num_tasks", 3)},
    network=network,
    heads=bert_heads,
    copies={
        "cls.predictions.decoder.weight": "ernie.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    demanded=DEMANDED,
    read=read,
    write=write,
)
