"""The seconds left for the rounds of a choice, and those set aside for what follows them."""

from __future__ import annotations

from tasks.comparison.choice_costs import seconds_asking, seconds_beside
from tasks.comparison.halving import FINALISTS
from tasks.comparison.model_choice import ModelChoice

# In stages without their training: a finalist at a seed is packaged and answers test and dev rows,
# then one is registered, judged and tried in a fresh process.
JUDGED, REGISTERED = 1.25, 3.0


def seconds_left(choice: ModelChoice, seeds: int) -> float:
    """Seconds left before the finalists are judged at so many seeds; 0 before registration."""
    return 60 * choice.minutes - sum(choice.spent.values()) - set_aside(choice, seeds)


def set_aside(choice: ModelChoice, seeds: int) -> float:
    """Seconds that judging the finalists at so many seeds and registering one may take."""
    rows, beside = choice.state.get("rows", {}), seconds_beside(choice)
    asked = 1 + rows.get("test", 0) / max(rows.get("dev", 0), 1)
    judged = JUDGED * beside + asked * seconds_asking(choice)
    return min(FINALISTS, len(choice.candidates)) * seeds * judged + REGISTERED * beside
