"""Training settings of a stage: the part of a resolved recipe that the trainer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Phase:
    """A part of the budget at one sequence length.

    Attributes:
        sequence_length: Tokens per row, including special tokens.
        share: Share of the budget, relative to the other phases.
        batch_size: Examples per update; None for the stage's.
    """

    sequence_length: int
    share: float = 1.0
    batch_size: int | None = None


@dataclass(frozen=True)
class Budget:
    """How long a stage trains.

    Attributes:
        unit: ``steps`` (updates), ``tokens`` (without padding) or ``epochs``.
        amount: A whole number for steps and tokens.
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
        network: The network's arguments, without vocabulary size and dtype.
        objectives: {objective: its settings}; for ``finetune``, auxiliary ones beside the head.
        weights: {objective: its factor in the loss}; 1 by default.
        alternate: Whether objectives take turns. The weight of an objective that chooses segments
            is then its share of the updates, not a factor in the loss.
        head: Name of the head; ``finetune`` only.
        head_settings: The head's settings.
        dataset: Labelled source; ``finetune`` only.
        mixture: What is learnt beside the dataset: ``{"beside": {dataset: {"prefix": text,
            "answers": kind}}, "limit": K or None, "temperature": T}`` (`models.inputs.mixture`), or
            None.
        phases: Consecutive phases of different sequence length; one optimizer runs through all.
        batch_size: Examples per update.
        micro_batches: Parts of a batch whose gradients are accumulated, to save memory.
        budget: Length of the training.
        optimizer: The optimizer's name and settings.
        remedies: At most one remedy against forgetting, with its settings: ``{"l2_sp":
            {"strength": α}}`` (`models.training.remedies`).
        reinitialise: Number of top blocks that begin at random, with the pooler.
        freeze: Patterns of the paths of variables that stay as they are.
        gradual_unfreezing: Time from the thawing of one layer to the next, ``{"epochs": n}`` or
            ``{"share": s}`` of the updates; None: all train from the start.
        lora: ``{"rank", "alpha", "targets", "dropout"}`` of low-rank updates of projections, the
            only weights of the network that are trained; None: the network itself is trained.
        feature_based: ``{"hidden_dim", "num_layers", "dropout"}`` of what is trained between a
            frozen network and the head (`models.layers.frozen_features`); None: the network itself
            is trained.
        r_drop: ``{"alpha": α}`` for two passes whose predictions should agree; None: one pass.
        fgm: ``{"epsilon": ε}`` for a second gradient on perturbed token embeddings, or None.
        average: ``{"decay": share}`` of the weights' average that an update keeps; the average is
            measured and kept in place of the weights. None: the weights themselves.
        stop: Early stopping: ``{"patience": evaluations, "metric": name or None}`` or None.
        select: Keep the weights of the best evaluation: ``{"metric": name, "split": name}`` or
            None.
        precision: ``auto``, ``float32`` or ``bfloat16``.
        seed: Seed of all randomness in the stage.
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
    mixture: Mapping[str, Any] | None = None
    micro_batches: int = 1
    remedies: Mapping[str, Any] = field(default_factory=dict)
    reinitialise: int = 0
    freeze: tuple[str, ...] = ()
    gradual_unfreezing: Mapping[str, float] | None = None
    lora: Mapping[str, Any] | None = None
    feature_based: Mapping[str, Any] | None = None
    r_drop: Mapping[str, float] | None = None
    fgm: Mapping[str, float] | None = None
    average: Mapping[str, float] | None = None
    stop: Mapping[str, Any] | None = None
    select: Mapping[str, Any] | None = None
    precision: str = "auto"
    seed: int = 0

    @property
    def sequence_length(self) -> int:
        """The sequence length of the longest phase."""
        return max(phase.sequence_length for phase in self.phases)

    @property
    def heads(self) -> dict[str, Mapping[str, Any]]:
        """{head: its settings}; empty without a head."""
        return {self.head: self.head_settings} if self.head else {}
