"""Is a new model not worse than the old one by more than a margin? A paired bootstrap answers.

Both models' predictions on the same rows are resampled together, so that rows hard for both do not
blur the difference, and rows of one text together, since they are not independent of each other.
The lower end of the interval decides: non-inferior if it is above -margin.

Reference:
    Efron and Tibshirani 1993, chapter 13 (percentile interval); Berg-Kirkpatrick et al. 2012,
    EMNLP (paired bootstrap of metrics that are no means).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fourstage.errors import ContractViolation
from models.evaluation.resampling import RESAMPLES, resampled_scores, scores
from models.protocols import Answers, Column


@dataclass(frozen=True)
class Comparison:
    """A candidate against a reference on the same rows.

    Attributes:
        metric: Its name.
        candidate: Its value.
        reference: Its value.
        difference: Candidate minus reference.
        low: Lower end of the interval of the difference.
        high: Upper end.
        confidence: One-sided, of the lower end.
        margin: Loss that was to be excluded.
        non_inferior: Whether it is: ``low > -margin`` (or the two always agree).
        smallest_margin: Smallest loss that these rows can exclude for two equally good models that
            err as these do: a margin below it is refused by chance more often than not.
        decidable: Whether the margin is at least that.
        rows: How many were compared.
        disagreements: Rows on which the two differ.
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
    """Paired-bootstrap non-inferiority.

    Args:
        answers: Their kind.
        true: (rows,) what is right.
        candidate: (rows,) what it says.
        reference: (rows,) what the other one says.
        metric: Name of a metric of such answers; higher is better.
        margin: Largest loss that is accepted, >= 0.
        confidence: One-sided, 0.5-1.
        groups: (rows,) what rows of one text share, drawn as one; each row its own where None.
        resamples: Of the groups, with replacement.
        seed: Of the resampling.

    Raises:
        ContractViolation: If the three do not speak of the same rows, or there is none.
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
    # Shifted to a true difference of 0, the lower end would lie this far below it.
    smallest = float(np.mean(differences) - low)
    return Comparison(
        metric=metric,
        candidate=ours,
        reference=theirs,
        difference=ours - theirs,
        low=low,
        high=high,
        confidence=confidence,
        margin=margin,
        non_inferior=not apart or low > -margin,
        smallest_margin=smallest,
        decidable=margin >= smallest,
        rows=len(true),
        disagreements=int(apart),
    )
