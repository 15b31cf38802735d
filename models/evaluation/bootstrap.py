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
from models.evaluation.classification import METRICS, evaluate
from models.evaluation.resampling import RESAMPLES, resampled_scores


@dataclass(frozen=True)
class Comparison:
    """A candidate against a reference on the same rows.

    Attributes:
        metric: Name in `METRICS`.
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
    labels: np.ndarray,
    candidate: np.ndarray,
    reference: np.ndarray,
    num_labels: int,
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
        labels: (rows,) true label ids.
        candidate: (rows,) label ids it predicts.
        reference: (rows,) label ids the other one predicts.
        num_labels: Number of labels.
        metric: Name in `METRICS`; higher is better.
        margin: Largest loss that is accepted, >= 0.
        confidence: One-sided, 0.5-1.
        groups: (rows,) what rows of one text share, drawn as one; each row its own where None.
        resamples: Of the groups, with replacement.
        seed: Of the resampling.

    Raises:
        ContractViolation: If the three do not speak of the same rows, or there is none.
    """
    labels, candidate, reference = map(np.asarray, (labels, candidate, reference))
    if not len(labels) == len(candidate) == len(reference) or not len(labels):
        raise ContractViolation(
            f"gate: expected predictions for the same rows, got {len(labels)} labels,"
            f" {len(candidate)} and {len(reference)} predictions; evaluate both models again"
        )
    ours, theirs = (
        evaluate(labels, said, num_labels, [metric])[metric] for said in (candidate, reference)
    )
    drawn = resampled_scores(
        labels,
        [candidate, reference],
        num_labels,
        METRICS[metric],
        groups=groups,
        resamples=resamples,
        seed=seed,
    )
    differences = drawn[0] - drawn[1]
    low = float(np.quantile(differences, 1 - confidence))
    high = float(np.quantile(differences, confidence))
    same = bool((candidate == reference).all())
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
        non_inferior=same or low > -margin,
        smallest_margin=smallest,
        decidable=margin >= smallest,
        rows=len(labels),
        disagreements=int((candidate != reference).sum()),
    )
