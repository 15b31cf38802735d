"""What decides a stage's training: the part of a resolved recipe that the trainer reads itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Phase:
    """A part of the budget at one sequence length.

    Attributes:
        sequence_length: Tokens a row, special ones counted.
        share: Part of the budget, relative to the other phases.
        batch_size: Examples a step; the stage's where None.
    """

    sequence_length: int
    share: float = 1.0
    batch_size: int | None = None


@dataclass(frozen=True)
class Budget:
    """How long a stage trains.

    Attributes:
        unit: ``steps`` (updates), ``tokens`` (padding not counted) or ``epochs``.
        amount: Whole for steps and tokens.
    """

    unit: str
    amount: float


@dataclass(frozen=True)
class Optimizer:
    """An optimizer's name and its settings."""

    name: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StageSettings:
    """One stage with every value explicit.

    Attributes:
        kind: ``general``, ``domain``, ``task`` or ``finetune``.
        family: Name of the network's file.
        network: The network's arguments but the size of the vocabulary and the dtype.
        objectives: Settings by objective; empty for ``finetune``.
        weights: Factor of each objective in the loss; 1 where left out.
        alternate: Whether objectives take turns; `weights` of those that choose segments are then
            their shares of the updates.
        head: Name of the head; ``finetune`` only.
        head_settings: Its settings.
        dataset: Labelled source; ``finetune`` only.
        phases: Sequence lengths one after the other, with one optimizer through all.
        batch_size: Examples a step.
        micro_batches: Parts of a batch whose gradients are added up, to save memory.
        budget: How long.
        optimizer: Its name and settings.
        remedies: Against forgetting: ``{"layer_decay": share}``.
        stop: ``{"patience": evaluations, "metric": name or None}`` or None.
        select: ``{"metric": name, "split": name}`` or None; keeps the best evaluation's weights.
        precision: ``auto``, ``float32`` or ``bfloat16``.
        seed: Of everything random in the stage.
    """

    kind: str
    family: str
    network: Mapping[str, Any]
    phases: tuple[Phase, ...]
    batch_size: int
    budget: Budget
    optimizer: Optimizer
    objectives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    alternate: bool = False
    head: str | None = None
    head_settings: Mapping[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    micro_batches: int = 1
    remedies: Mapping[str, Any] = field(default_factory=dict)
    stop: Mapping[str, Any] | None = None
    select: Mapping[str, Any] | None = None
    precision: str = "auto"
    seed: int = 0

    @property
    def sequence_length(self) -> int:
        """The longest of its phases."""
        return max(phase.sequence_length for phase in self.phases)

    @property
    def heads(self) -> dict[str, Mapping[str, Any]]:
        """Settings by head: of the one it has, or of none."""
        return {self.head: self.head_settings} if self.head else {}
