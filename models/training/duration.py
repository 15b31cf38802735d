"""From a budget to a number of updates in each phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fourstage.errors import RecipeError
from models.inputs.task_schedule import TaskSchedule
from models.training.stage import Budget, Phase


@dataclass(frozen=True)
class Duration:
    """How many updates each phase has.

    Attributes:
        steps: Updates of each phase.
        steps_in_pass: Updates until the (longest) corpus has been read once, in the last phase.
    """

    steps: tuple[int, ...]
    steps_in_pass: int

    @property
    def total(self) -> int:
        """Updates in all."""
        return sum(self.steps)

    def place(self, step: int) -> tuple[int, int]:
        """(phase, batch within it) of update `step`, counted from 0."""
        for phase, steps in enumerate(self.steps):
            if step < steps:
                return phase, step
            step -= steps
        raise IndexError(step)


def duration(phases: Sequence[Phase], budget: Budget, feeds: Sequence[TaskSchedule]) -> Duration:
    """Share the budget out.

    Args:
        phases: With their shares.
        budget: Steps, tokens or epochs.
        feeds: What the updates of each phase read.

    Raises:
        RecipeError: If the budget is too small for a single update, or its unit is unknown.
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
            f"budget: {budget.amount:g} {budget.unit} are less than one update; one reads"
            f" {feeds[0].tokens_per_batch:.0f} tokens, a pass is"
            f" {feeds[0].batches_in_pass():.0f} updates"
        )
    return Duration(tuple(steps), max(1, round(feeds[-1].batches_in_pass())))


def _shared(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers with the given sum, by the borders of the shares."""
    borders = [0]
    covered = 0.0
    for share in shares:
        covered += share
        borders.append(round(total * covered))
    borders[-1] = total
    return [b - a for a, b in pairwise(borders)]
