"""What training a stage needs, what it tells on the way, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from models.catalogue import answers_of
from models.protocols import TokenisedCorpus, TokenisedRows, Tokenizer
from models.training.stage import StageSettings


@dataclass(frozen=True)
class TrainingJob:
    """One stage, as the training loop sees it: its settings, and what lies where.

    Attributes:
        stage: Its settings.
        tokenizer: The recipe's.
        corpora: {source: (tokenised training documents, share of tokens)}; pre-training only.
        heldout: {source: tokenised held-out documents}; a stage may be selected or stopped by their
            loss.
        rows: {split: tokenised rows} of the dataset; ``train``, and ``dev`` to select on.
        markings: Strings that mark something in the rows' texts, such as entities.
        initial: Folder of the stage before, or None to start from random weights.
        checkpoint_every: Updates between checkpoints; None for a tenth of the stage, 10 to 500.
        deadline_seconds: Stop with a checkpoint after so long, or None.
        most_bytes: Stop with a checkpoint once the stage's files take more, or None.
        heldout_rows: Windows of a held-out corpus that are measured, the first ones.
        folders: Project folders, searched before the built-in parts.
    """

    stage: StageSettings
    tokenizer: Tokenizer
    corpora: Mapping[str, tuple[TokenisedCorpus, float]] = field(default_factory=dict)
    heldout: Mapping[str, TokenisedCorpus] = field(default_factory=dict)
    rows: Mapping[str, TokenisedRows] = field(default_factory=dict)
    markings: tuple[str, ...] = ()
    initial: Path | None = None
    checkpoint_every: int | None = None
    deadline_seconds: float | None = None
    most_bytes: float | None = None
    heldout_rows: int = 2048
    folders: tuple[Path, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """What the training rows' answers are made of, in the order of the head's outputs."""
        if self.stage.head is None:
            return ()
        return answers_of(self.stage.head, self.folders).names(self.rows["train"].answers)


class TrainingListener(Protocol):
    """Who is told how a stage goes on."""

    def progress(self, step: int, total: int, scalars: Mapping[str, float]) -> None:
        """Often; to be shown, not kept."""
        ...

    def metrics(self, rows: Sequence[Mapping[str, float]]) -> None:
        """{"step": n, name: value} rows to keep; at checkpoints only, each step once."""
        ...


class Silence:
    """A report that nobody reads."""

    def progress(self, step: int, total: int, scalars: Mapping[str, float]) -> None:
        """Say nothing."""

    def metrics(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Keep nothing."""


@dataclass(frozen=True)
class Outcome:
    """What training a stage came to.

    Attributes:
        steps: Updates done, those before an interruption counted.
        tokens: Tokens read, padding not counted.
        seconds: Spent training, start-up and evaluation left out.
        tokens_per_second: Of the updates that compiled nothing.
        metrics: As in ``metrics.json``.
        passes: How often each corpus was read.
        turns: Where objectives alternate, the updates of each, phase by phase.
    """

    steps: int
    tokens: int
    seconds: float
    tokens_per_second: float
    metrics: Mapping[str, Any]
    passes: Mapping[str, float]
    turns: Sequence[Mapping[str, int]] = ()
