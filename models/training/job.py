"""The input of training a stage, its progress report, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from models.catalogue import answers_of
from models.inputs.captions import asked_answers
from models.linear_machine import Machine
from models.protocols import TokenisedCorpus, TokenisedRows, Tokenizer
from models.training.stage import StageSettings


@dataclass(frozen=True)
class TrainingJob:
    """Everything the training loop needs for one stage: settings, data and limits.

    Attributes:
        stage: The stage's settings.
        tokenizer: The recipe's tokenizer.
        corpora: {source: (tokenised training documents, share of tokens)}; pre-training only.
        earlier: As `corpora`, of the stage before; only for the remedy that measures by it.
        heldout: {source: tokenised held-out documents}; their loss may select the weights or stop
            the stage early.
        rows: {split: tokenised rows of the dataset}; ``train``, and ``dev`` for selection.
        beside: {dataset: its tokenised training rows}, of those mixed with the stage's own.
        markings: Marker strings in the rows' texts, such as those around entities.
        machine: What the head's wide part has learned from the training rows, where it has already.
        initial: Folder of the previous stage, or None to start from random weights.
        starts: By part of the network, the folder of a stage, or the file of word vectors, that it
            starts from (`models.training.starts`); only without `initial`.
        checkpoint_every: Updates between checkpoints; None for a tenth of the stage, 10 to 500.
        deadline_seconds: Time after which to stop with a checkpoint, or None.
        most_bytes: Size of the stage's files beyond which to stop with a checkpoint, or None.
        heldout_rows: Largest number of windows measured per held-out corpus, from its start.
        folders: Project folders, searched before the built-in parts.
    """

    stage: StageSettings
    tokenizer: Tokenizer
    corpora: Mapping[str, tuple[TokenisedCorpus, float]] = field(default_factory=dict)
    earlier: Mapping[str, tuple[TokenisedCorpus, float]] = field(default_factory=dict)
    heldout: Mapping[str, TokenisedCorpus] = field(default_factory=dict)
    rows: Mapping[str, TokenisedRows] = field(default_factory=dict)
    beside: Mapping[str, TokenisedRows] = field(default_factory=dict)
    markings: tuple[str, ...] = ()
    machine: Machine | None = None
    initial: Path | None = None
    starts: Mapping[str, Path] = field(default_factory=dict)
    checkpoint_every: int | None = None
    deadline_seconds: float | None = None
    most_bytes: float | None = None
    heldout_rows: int = 2048
    folders: tuple[Path, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names that the training rows' answers consist of, ordered as the head's outputs."""
        if self.stage.head is None:
            return ()
        return answers_of(self.stage.head, self.folders).names(self.rows["train"].answers)

    @property
    def answers(self) -> tuple[str, ...]:
        """The answers of captions that the stage's objectives learn, ordered by id; mostly none."""
        corpora = (corpus for corpus, _ in self.corpora.values())
        return asked_answers(self.stage.objectives, corpora, self.folders)


class TrainingListener(Protocol):
    """Receiver of a stage's progress and metrics."""

    def progress(self, step: int, total: int, scalars: Mapping[str, float]) -> None:
        """Called often, for display only."""
        ...

    def metrics(self, rows: Sequence[Mapping[str, float]]) -> None:
        """New {"step": n, name: value} rows, to be stored; called at checkpoints, each row once."""
        ...


class Silence:
    """A listener that discards everything."""

    def progress(self, step: int, total: int, scalars: Mapping[str, float]) -> None:
        """Discard progress."""

    def metrics(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Discard metrics."""


@dataclass(frozen=True)
class Outcome:
    """Result of training a stage.

    Attributes:
        steps: Updates done, including those before an interruption.
        tokens: Tokens read, without padding.
        seconds: Training time, without start-up and evaluation.
        tokens_per_second: Speed over the updates that did not compile.
        metrics: Contents of ``metrics.json``.
        passes: {corpus: how often it was read}.
        turns: {objective: its number of updates} for each phase, where objectives alternate.
        weights: Number of weights of network and heads, without what a wide part counts; None for a
            family that trains itself.
        trained_weights: Number of weights that were trained; with low-rank updates, only theirs and
            those of the heads.
    """

    steps: int
    tokens: int
    seconds: float
    tokens_per_second: float
    metrics: Mapping[str, Any]
    passes: Mapping[str, float]
    turns: Sequence[Mapping[str, int]] = ()
    weights: int | None = None
    trained_weights: int | None = None
