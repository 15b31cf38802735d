"""Number of updates in each phase, computed from the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fourstage.errors import RecipeError
from models.inputs.task_schedule import TaskSchedule
from models.training.stage import Budget, Phase


@dataclass(frozen=True)
class Duration:
    """Length of a stage in updates.

    Attributes:
        steps: Number of updates of each phase.
        steps_in_pass: Updates per epoch at the last phase's settings; with several corpora, until
            the longest pass is complete.
    """

    steps: tuple[int, ...]
    steps_in_pass: int

    @property
    def total(self) -> int:
        """Number of updates of all phases."""
        return sum(self.steps)

    def place(self, step: int) -> tuple[int, int]:
        """(phase, batch within the phase) of update `step`, all counted from 0."""
        for phase, steps in enumerate(self.steps):
            if step < steps:
                return phase, step
            step -= steps
        raise IndexError(step)


def duration(phases: Sequence[Phase], budget: Budget, feeds: Sequence[TaskSchedule]) -> Duration:
    """Divide the budget among the phases.

    Args:
        phases: The phases, with their shares of the budget.
        budget: Budget in steps, tokens or epochs.
        feeds: The batches of each phase.

    Raises:
        RecipeError: The budget is too small for a single update, or its unit is unknown.
    """
    shares = [phase.share / sum(p.share for p in phases) for phase in phases]
    if budget.unit == "steps":
        steps = _shared(int(budget.amount), shares)
    elif budget.unit == "tokens":
        steps = [
            round(budget.amount * share / feed.tokens_per_batch)
            for share, feed in zip(shares, feeds, strict=True)
        ]
    elif budget.unit == "epochs":
        steps = [
            round(budget.amount * share * feed.batches_in_pass())
            for share, feed in zip(shares, feeds, strict=True)
        ]
    else:
        raise RecipeError(f"budget: expected steps, tokens or epochs, got {budget.unit!r}")
    if not sum(steps):
        raise RecipeError(
            f"budget: {budget.amount:g} {budget.unit} are less than one update; an update reads"
            f" {feeds[0].tokens_per_batch:.0f} tokens, an epoch is"
            f" {feeds[0].batches_in_pass():.0f} updates"
        )
    return Duration(tuple(steps), max(1, round(feeds[-1].batches_in_pass())))


def _shared(total: int, shares: Sequence[float]) -> list[int]:
    """Split `total` into whole numbers by `shares`; rounding the borders keeps the sum exact.

    Example: 10 by (1/3, 1/3, 1/3) has the borders 0, 3, 7, 10 and gives 3, 4, 3.
    """
    borders = [0]
    covered = 0.0
    for share in shares:
        covered += share
        borders.append(round(total * covered))
    borders[-1] = total
    return [b - a for a, b in pairwise(borders)]
