"""What answers score: on the rows, and on rows drawn anew, those of one text together.

A test set is one draw of many that could have been made. A score on thousands of draws from its own
rows shows how much another set would have moved it (Efron and Tibshirani 1993, chapter 6).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fourstage.errors import UnknownNameError
from models.protocols import Answers, Column

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


def scores(
    answers: Answers, true: Column, said: Column, metrics: Sequence[str]
) -> dict[str, float]:
    """{metric: value} of a model's answers.

    Args:
        answers: Their kind.
        true: (rows,) what is right.
        said: (rows,) what the model says.
        metrics: Names.

    Raises:
        UnknownNameError: If answers of this kind have no such metric.
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
    """(models, resamples) scores; draw r is the same rows for all models.

    Args:
        answers: Their kind.
        true: (rows,) what is right.
        said: Of each model what it says, (rows,).
        metric: Name of one of theirs.
        groups: (rows,) anything that rows of one text share; drawn as one. Each row its own
            where None.
        resamples: Number of draws.
        seed: Of the draws.
    """
    from scipy.sparse import csr_array

    group_of = numbered(groups, len(true))
    num_groups = int(group_of.max()) + 1
    # (groups, rows): adds up the rows of each group.
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
