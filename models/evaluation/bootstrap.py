"""Non-inferiority test: is a new model worse than the old one by at most a margin?

A paired bootstrap: both models' predictions are resampled on the same rows, so that rows that are
hard for both do not blur the difference. Rows of one text are dependent, so they are resampled
together. The candidate is non-inferior if the end of the interval where it is worse is within the
margin: the lower end, or the upper one of a metric of which lower is better.

Reference:
    Efron and Tibshirani 1993, chapter 13 (percentile interval); Berg-Kirkpatrick et al. 2012,
    EMNLP (paired bootstrap of metrics that are not means).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fourstage.errors import ContractViolation
from models.evaluation.resampling import RESAMPLES, resampled_scores, scores
from models.metrics import advantage
from models.protocols import Answers, Column


@dataclass(frozen=True)
class Comparison:
    """Result of comparing a candidate with a reference on the same rows.

    Attributes:
        metric: Name of the metric.
        candidate: The candidate's score.
        reference: The reference's score.
        difference: Candidate minus reference.
        low: Lower end of the interval of the difference.
        high: Upper end of the interval.
        confidence: One-sided confidence of each end.
        margin: Largest accepted loss.
        non_inferior: Whether ``low > -margin``, or ``high < margin`` where lower is better, of
            enough groups; or the two models score the same on all resampled rows.
        smallest_margin: Smallest margin that these rows can resolve. With a smaller one, a
            candidate as good as the reference, with as many disagreements, would be rejected more
            often than not.
        decidable: Whether the margin is at least `smallest_margin`.
        rows: Number of rows.
        groups: Number of groups, which are resampled.
        enough: Whether so few groups could be this sure if all agreed (sign test): 5 can for 0.95.
        disagreements: Number of rows on which the models differ.
    """

    metric: str
    candidate: float
    reference: float
    difference: float
    low: float
    high: float
    confidence: float
    margin: float
    non_inferior: bool
    smallest_margin: float
    decidable: bool
    rows: int
    groups: int
    enough: bool
    disagreements: int


def compare(
    answers: Answers,
    true: Column,
    candidate: Column,
    reference: Column,
    *,
    metric: str,
    margin: float = 0.0,
    confidence: float = 0.95,
    groups: np.ndarray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Test non-inferiority with a paired bootstrap.

    Args:
        answers: The kind of answer.
        true: (rows,) correct answers.
        candidate: (rows,) the candidate's answers.
        reference: (rows,) the reference's answers.
        metric: Name of a metric of `answers`.
        margin: Largest accepted loss, >= 0.
        confidence: One-sided confidence, 0.5-1.
        groups: (rows,) group of each row; rows of one group (text) are resampled together. None
            for a group per row.
        resamples: Number of resamples of the groups, with replacement.
        seed: Seed of the resampling.

    Raises:
        ContractViolation: The numbers of answers differ, or there are no rows.
    """
    if not len(true) == len(candidate) == len(reference) or not len(true):
        raise ContractViolation(
            f"gate: expected predictions for the same rows, got {len(true)} answers,"
            f" {len(candidate)} and {len(reference)} predictions; evaluate both models again"
        )
    ours, theirs = (scores(answers, true, s, [metric])[metric] for s in (candidate, reference))
    drawn = resampled_scores(
        answers,
        true,
        [candidate, reference],
        metric,
        groups=groups,
        resamples=resamples,
        seed=seed,
    )
    differences = drawn[0] - drawn[1]
    low = float(np.quantile(differences, 1 - confidence))
    high = float(np.quantile(differences, confidence))
    apart = sum(one != other for one, other in zip(candidate, reference, strict=True))
    worst = min(advantage(metric, low), advantage(metric, high))
    # If the true difference were 0, the interval would reach this far to where it is worse.
    smallest = advantage(metric, float(np.mean(differences))) - worst
    num_groups = len(true) if groups is None else len(np.unique(groups))
    enough = 0.5**num_groups <= 1 - confidence
    return Comparison(
        metric=metric,
        candidate=ours,
        reference=theirs,
        difference=ours - theirs,
        low=low,
        high=high,
        confidence=confidence,
        margin=margin,
        non_inferior=(enough and worst > -margin) or not differences.any(),
        smallest_margin=smallest,
        decidable=margin >= smallest,
        rows=len(true),
        groups=num_groups,
        enough=enough,
        disagreements=int(apart),
    )
