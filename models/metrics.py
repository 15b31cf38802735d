"""What has to be known of a metric by its name: which of two values is better, and of what it is.

Every place that chooses or judges by a metric asks here. A metric that is not named here, such as a
project's own, is better where it is higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

PERPLEXITY, PERPLEXITY_A_WORD = "perplexity", "perplexity_a_word"
HELDOUT_LOSS = "heldout_loss"
# What a network finds of the correct answer, not of an answer that it gives.
OF_LIKELIHOOD = (PERPLEXITY, PERPLEXITY_A_WORD)
LOWER_IS_BETTER = frozenset({HELDOUT_LOSS, *OF_LIKELIHOOD})


def advantage(metric: str, difference: float) -> float:
    """A difference of two values, one minus another, as how much the one is better.

    Args:
        metric: The metric's name.
        difference: In the metric's unit.
    """
    return -difference if metric in LOWER_IS_BETTER else difference


def rank(metric: str, value: float) -> float:
    """A value of a metric as a number that is higher where it is better; NaN is the lowest."""
    return -math.inf if math.isnan(value) else advantage(metric, value)


def is_better(metric: str, value: float, other: float) -> bool:
    """Whether a value of a metric is better than another one."""
    return rank(metric, value) > rank(metric, other)


def best(metric: str, values: Sequence[float]) -> int:
    """Number of the best of one or more values; of equal ones, the first."""
    return max(range(len(values)), key=lambda i: rank(metric, values[i]))


def of_answers(metrics: Iterable[str]) -> tuple[str, ...]:
    """The metrics that compare answers with the correct ones, which any answer has."""
    return tuple(metric for metric in metrics if metric not in OF_LIKELIHOOD)


def of_likelihood(metrics: Iterable[str]) -> tuple[str, ...]:
    """The metrics for which a network has to read the correct answers."""
    return tuple(metric for metric in metrics if metric in OF_LIKELIHOOD)
