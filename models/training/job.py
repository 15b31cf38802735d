"""What training a stage needs, what it tells on the way, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from models.protocols import TokenisedCorpus, TokenisedRows, Tokenizer


@dataclass(frozen=True)
class Phase:
    """A part of the budget at one sequence length.

    Attributes:
        sequence_length: Tokens a row, special ones counted.
        share: Part of the budget; the phases' shares need not sum to 1.
        batch_size: Rows an update; the job's where None.
    """

    sequence_length: int
    share: float = 1.0
    batch_size: int | None = None


@dataclass(frozen=True)
class Budget:
    """How long to train: ``steps`` (updates), ``tokens`` (padding not counted) or ``epochs``."""

    unit: str
    amount: float


@dataclass(frozen=True)
class TrainingJob:
    """One stage, as the training loop sees it.

    Attributes:
        stage: ``general``, ``domain``, ``task`` or ``finetune``; goes into files and messages.
        family: Name of the network's file.
        network: The network's arguments but the size of the vocabulary and the dtype.
        tokenizer: The recipe's.
        phases: Sequence lengths one after the other, with one optimizer through all.
        batch_size: Rows an update.
        budget: How long.
        optimizer: {"adamw": settings}.
        objectives: {name: settings}, pre-training only.
        weights: Factor of each objective in the loss; 1 where left out.
        alternate: Whether objectives take turns; `weights` of those that choose segments are then
            their shares of the updates.
        head: {name: settings} of the one head, fine-tuning only.
        corpora: {source: (tokenised training documents, share of tokens)}; pre-training only.
        heldout: {source: tokenised held-out documents}; a stage may be selected or stopped by their
            loss.
        dataset: Name of the labelled source; fine-tuning only.
        rows: {split: tokenised rows} of it; ``train``, and ``dev`` to select on.
        label_names: Labels in the order of their ids.
        markings: Strings that mark something in the rows' texts, such as entities.
        accumulation: Parts a batch is cut into to save memory.
        remedies: Against forgetting: {"layer_decay": share}.
        stop: {"patience": evaluations, "metric": name or None} or None.
        select: {"metric": name, "split": name} or None; keeps the weights of the best evaluation.
        precision: ``auto``, ``float32`` or ``bfloat16``.
        initial: Folder of the stage before, or None to start from random weights.
        seed: Of everything random.
        checkpoint_every: Updates between checkpoints; None for a tenth of the stage, 10 to 500.
        deadline_seconds: Stop with a checkpoint after so long, or None.
        most_bytes: Stop with a checkpoint once the stage's files take more, or None.
        heldout_rows: Windows of a held-out corpus that are measured, the first ones.
        folders: Project folders, searched before the built-in parts.
    """

    stage: str
    family: str
    network: Mapping[str, Any]
    tokenizer: Tokenizer
    phases: Sequence[Phase]
    batch_size: int
    budget: Budget
    optimizer: Mapping[str, Mapping[str, Any]]
    objectives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    alternate: bool = False
    head: Mapping[str, Mapping[str, Any]] | None = None
    corpora: Mapping[str, tuple[TokenisedCorpus, float]] = field(default_factory=dict)
    heldout: Mapping[str, TokenisedCorpus] = field(default_factory=dict)
    dataset: str = "rows"
    rows: Mapping[str, TokenisedRows] = field(default_factory=dict)
    label_names: tuple[str, ...] = ()
    markings: tuple[str, ...] = ()
    accumulation: int = 1
    remedies: Mapping[str, Any] = field(default_factory=dict)
    stop: Mapping[str, Any] | None = None
    select: Mapping[str, Any] | None = None
    precision: str = "auto"
    initial: Path | None = None
    seed: int = 0
    checkpoint_every: int | None = None
    deadline_seconds: float | None = None
    most_bytes: float | None = None
    heldout_rows: int = 2048
    folders: tuple[Path, ...] = ()

    @property
    def sequence_length(self) -> int:
        """The longest of its phases."""
        return max(phase.sequence_length for phase in self.phases)


class Report(Protocol):
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
