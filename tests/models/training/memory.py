"""Small corpora and rows in memory, with something to learn in them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fourstage.recipe.defaults import OPTIMIZERS, STAGES
from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
from models.training.job import TrainingJob
from models.training.stage import Budget, Optimizer, Phase, StageSettings

NETWORK = {
    "num_layers": 2,
    "hidden_dim": 32,
    "num_heads": 2,
    "intermediate_dim": 64,
    "max_sequence_length": 32,
}
# Compiled in little more than half the time, where the depth of the network is not the subject.
ONE_LAYER = NETWORK | {"num_layers": 1}
# Every setting; what a test says differs from it.
RULE = STAGES["finetune"].adamw
ADAMW = {"adamw": {"peak_learning_rate": 3e-3, "warmup": 0.1}}
WORDS = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]


@cache
def tokenizer() -> WordPiece:
    """Every word is a piece."""
    return WordPiece([*SPECIAL_TOKENS, *WORDS], lowercase=True)


class Corpus:
    """Sentences in which the next word follows from the last one, mostly."""

    def __init__(self, documents: int, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.texts = []
        for _ in range(documents):
            sentences = rng.integers(3, 7)
            lengths = rng.integers(4, 10, sentences)
            word = int(rng.integers(200))
            ids = []
            for _ in range(int(lengths.sum())):
                ids.append(word + len(SPECIAL_TOKENS))
                word = (word * 7 + 3) % 200 if rng.random() < 0.95 else int(rng.integers(200))
            self.texts.append((np.array(ids, np.int32), lengths.astype(np.int32)))

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(ids) for ids, _ in self.texts], np.int64)

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ids, lengths = self.texts[i]
        return ids, lengths, np.ones(len(ids), bool)


class Rows:
    """Two labels, told by which half of the vocabulary most words come from."""

    def __init__(self, rows: int, seed: int = 0):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, rows)
        self.answers = [("high", "low")[label] for label in labels]
        self.ids_of = [
            (5 + (label * 100 + rng.integers(0, 120, rng.integers(4, 25))) % 200).astype(np.int32)
            for label in labels
        ]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def ids(self) -> list[str]:
        return [f"r{i}" for i in range(len(self))]

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(ids) for ids in self.ids_of], np.int64)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return (self.ids_of[i],)


def job(settings: Mapping[str, Any]) -> TrainingJob:
    """Settings of a stage and of its job, sorted out."""
    ((rule, given),) = settings["optimizer"].items()
    settings = {**settings, "optimizer": Optimizer(rule, {**OPTIMIZERS.get(rule, RULE), **given})}
    of_stage = {f.name for f in fields(StageSettings)} & set(settings)
    stage = StageSettings(**{name: settings[name] for name in of_stage})
    return TrainingJob(stage, **{name: settings[name] for name in set(settings) - of_stage})


def pretraining(**changes: Any) -> TrainingJob:
    settings: dict[str, Any] = {
        "kind": "general",
        "family": "bert",
        "network": ONE_LAYER,
        "tokenizer": tokenizer(),
        "phases": [Phase(16, 0.5), Phase(32, 0.5)],
        "batch_size": 8,
        "budget": Budget("steps", 12),
        "optimizer": ADAMW,
        "objectives": {"masked_lm": {}, "next_sentence": {}},
        "corpora": {"a": (Corpus(60, 1), 0.7), "b": (Corpus(60, 2), 0.3)},
        "heldout": {"a": Corpus(10, 3)},
        "precision": "float32",
        "seed": 5,
        "checkpoint_every": 4,
    }
    return job(settings | changes)


def finetuning(initial: Path | None = None, **changes: Any) -> TrainingJob:
    settings: dict[str, Any] = {
        "kind": "finetune",
        "family": "bert",
        "network": ONE_LAYER,
        "tokenizer": tokenizer(),
        "phases": [Phase(32)],
        "batch_size": 8,
        "budget": Budget("epochs", 2),
        "optimizer": ADAMW,
        "head": "sequence_classification",
        "head_settings": {"class_weights": "balanced"},
        "dataset": "rows",
        "rows": {"train": Rows(100, 1), "dev": Rows(60, 2)},
        "select": {"metric": "macro_f1", "split": "dev"},
        "precision": "float32",
        "initial": initial,
        "seed": 5,
        "checkpoint_every": 5,
    }
    return job(settings | changes)


class Recorder:
    """A report that keeps what it is told, and may ask to stop."""

    def __init__(self) -> None:
        self.rows: list[dict] = []
        self.calls = 0

    def progress(self, step: int, total: int, scalars: dict) -> None:
        self.calls += 1

    def metrics(self, rows: list) -> None:
        self.rows += rows


def cut_off_after(step: int, finished: Path, folder: Path) -> None:
    """Leave in a new folder what a stage that is killed after an update leaves: a checkpoint.

    Up to there it has done what the finished one did: `test_gradient.py` and `test_alternation.py`
    kill stages at any update. So nothing is compiled and trained twice.

    Args:
        step: An update after which the finished stage has kept a checkpoint.
        finished: Folder of the finished stage.
        folder: New.
    """
    name = Path("checkpoints") / f"step-{step:09d}"
    shutil.copytree(finished / name, folder / name)
    for best in (finished / "checkpoints").glob("best-*"):
        if int(best.name.removeprefix("best-")) <= step:
            shutil.copytree(best, folder / "checkpoints" / best.name)
