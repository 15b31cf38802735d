"""Scores of answers, on the test rows and on bootstrap resamples of them.

A test set is a sample. The scores on thousands of resamples show how much the score would vary with
another test set (Efron and Tibshirani 1993, chapter 6). Rows of one text are resampled together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fourstage.errors import UnknownNameError
from models.protocols import Answers, Column

RESAMPLES = 2000
_AT_ONCE = 4_000_000  # largest number of draws in memory


def numbered(groups: np.ndarray | None, rows: int) -> np.ndarray:
    """(rows,) number of each row's group, from 0; None gives each row its own group."""
    if groups is None:
        return np.arange(rows)
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def ratio_error(sums: np.ndarray, weights: np.ndarray) -> float:
    """Standard error of the weighted mean ``sums.sum() / weights.sum()`` over random parts.

    Args:
        sums: (parts,) sums, such as the summed loss of each batch; two or more.
        weights: (parts,) weights, such as the number of predicted tokens of each batch.

    Reference:
        Cochran 1977, Sampling Techniques, 2.11 (the estimator of a ratio's variance).
    """
    left = sums - weights * (sums.sum() / weights.sum())
    parts = len(left)
    return float(np.sqrt(parts / (parts - 1) * (left**2).sum()) / weights.sum())


def scores(
    answers: Answers, true: Column, said: Column, metrics: Sequence[str]
) -> dict[str, float]:
    """{metric: value} of a model's answers.

    Args:
        answers: The kind of answer.
        true: (rows,) correct answers.
        said: (rows,) the model's answers.
        metrics: Names of metrics.

    Raises:
        UnknownNameError: This kind of answer has no such metric.
    """
    for name in metrics:
        if name not in answers.metrics:
            raise UnknownNameError("metrics", name, "a metric of such answers", answers.metrics)
    sums = np.asarray(answers.statistics(true, [said])[0].sum(axis=0), float)
    return {name: float(answers.metrics[name](sums)) for name in metrics}


def resampled_scores(
    answers: Answers,
    true: Column,
    said: Sequence[Column],
    metric: str,
    *,
    groups: np.ndarray | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> np.ndarray:
    """(models, resamples) scores on resamples that are the same for all models.

    Args:
        answers: The kind of answer.
        true: (rows,) correct answers.
        said: One (rows,) column of answers per model.
        metric: Name of a metric of `answers`.
        groups: (rows,) group of each row; rows of one group (text) are resampled together. None
            for a group per row.
        resamples: Number of resamples.
        seed: Seed of the resampling.
    """
    from scipy.sparse import csr_array

    group_of = numbered(groups, len(true))
    num_groups = int(group_of.max()) + 1
    # (groups, rows): sums over the rows of each group.
    members = csr_array(
        (np.ones(len(true)), (group_of, np.arange(len(true)))), shape=(num_groups, len(true))
    )
    tables = [members @ table for table in answers.statistics(true, said)]  # (groups, K) each
    rng = np.random.default_rng([seed, len(true), resamples])
    found = np.empty((len(tables), resamples))
    together = max(1, _AT_ONCE // max(num_groups, tables[0].shape[1]))
    for start in range(0, resamples, together):
        stop = min(start + together, resamples)
        draws = [rng.integers(num_groups, size=num_groups) for _ in range(start, stop)]
        times = np.array([np.bincount(draw, minlength=num_groups) for draw in draws], float)
        for i, table in enumerate(tables):
            found[i, start:stop] = answers.metrics[metric]((table.T @ times.T).T)
    return found
