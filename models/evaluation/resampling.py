"""Rows drawn anew with replacement, those of one text together, and what predictions score there.

A test set is one draw of many that could have been made. A score on thousands of draws from its own
rows shows how much another set would have moved it (Efron and Tibshirani 1993, chapter 6).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.evaluation.classification import Metric

RESAMPLES = 2000
_AT_ONCE = 4_000_000  # draws held in memory together


def numbered(groups: np.ndarray | None, rows: int) -> np.ndarray:
    """(rows,) number of each row's group from 0; each row its own group where None."""
    if groups is None:
        return np.arange(rows)
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def ratio_error(sums: np.ndarray, weights: np.ndarray) -> float:
    """Standard error of the mean ``sums.sum() / weights.sum()`` over parts drawn at random.

    Args:
        sums: (parts,) such as the summed loss of a batch; two or more.
        weights: (parts,) such as the number of tokens it is summed over.

    Reference:
        Cochran 1977, Sampling Techniques, 2.11 (the estimator of a ratio's variance).
    """
    left = sums - weights * (sums.sum() / weights.sum())
    parts = len(left)
    return float(np.sqrt(parts / (parts - 1) * (left**2).sum()) / weights.sum())


def resampled_scores(
    labels: np.ndarray,
    predictions: Sequence[np.ndarray],
    num_labels: int,
    metric: Metric,
    *,
    groups: np.ndarray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> np.ndarray:
    """(predictions, resamples) scores; draw r is the same rows for all predictions.

    Args:
        labels: (rows,) true label ids, -1 for none.
        predictions: Label ids, (rows,) each.
        num_labels: N.
        metric: Of confusion counts.
        groups: (rows,) anything that rows of one text share; drawn as one. Each row its own
            where None.
        resamples: Number of draws.
        seed: Of the draws.
    """
    from scipy.sparse import csr_array

    labels = np.asarray(labels)
    group_of = numbered(groups, len(labels))
    num_groups = int(group_of.max()) + 1
    known = labels >= 0
    tables = [
        csr_array(
            (
                np.ones(known.sum()),
                (group_of[known], labels[known].astype(np.int64) * num_labels + said[known]),
            ),
            shape=(num_groups, num_labels**2),
        )
        for said in map(np.asarray, predictions)
    ]
    rng = np.random.default_rng([seed, len(labels), resamples])
    scores = np.empty((len(tables), resamples))
    together = max(1, _AT_ONCE // max(num_groups, num_labels**2))
    for start in range(0, resamples, together):
        stop = min(start + together, resamples)
        draws = [rng.integers(num_groups, size=num_groups) for _ in range(start, stop)]
        times = np.array([np.bincount(draw, minlength=num_groups) for draw in draws], float)
        for i, table in enumerate(tables):
            counts = (table.T @ times.T).T.reshape(-1, num_labels, num_labels)
            scores[i, start:stop] = metric(counts)
    return scores
