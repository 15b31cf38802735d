"""One number per row, with the correlations of predicted and correct numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from fourstage.errors import ContractViolation
from models.protocols import Column, Metric

# The columns of `Number.statistics`: 1, then five sums of the numbers, then five of their ranks.
_NUMBERS, _RANKS = slice(1, 6), slice(6, 11)
_ROUNDING = 1e-12  # a variance below this share of the mean square is 0


def numbers_of(answers: Column) -> np.ndarray:
    """(rows,) float64 numbers; NaN for an answer that is not a finite number."""
    return np.array([_number(answer) for answer in answers], float)


def _number(answer: Any) -> float:
    try:
        number = float(answer)
    except (TypeError, ValueError):
        return np.nan
    return number if isfinite(number) else np.nan


def _correlation(columns: slice) -> Metric:
    """Pearson's correlation from sums; 0 where all numbers of one side are equal."""

    def of(sums: np.ndarray) -> np.ndarray:
        rows = sums[..., 0]
        true, said, true_squares, said_squares, products = np.moveaxis(sums[..., columns], -1, 0)
        scale = np.ones_like(rows)
        for total, squares in ((true, true_squares), (said, said_squares)):
            spread = rows * squares - total**2
            scale = scale * np.where(spread > _ROUNDING * rows * squares, spread, 0.0)
        covariance = rows * products - true * said
        share = covariance / np.sqrt(np.where(scale > 0, scale, 1.0))
        return np.where(scale > 0, np.clip(share, -1.0, 1.0), 0.0)

    return of


class Number:
    """A kind of answer: one finite number per row.

    No error is offered, such as the mean absolute one.

    Attributes:
        metrics: ``pearson`` and ``spearman``, -1 to 1. The ranks of Spearman's correlation are
            those in the whole set, with the mean rank for ties. Resampled sets keep these ranks,
            which makes it a function of sums; ranking each resample anew would not be one.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "pearson": _correlation(_NUMBERS),
        "spearman": _correlation(_RANKS),
    }
    usual: ClassVar[tuple[str, ...]] = ("pearson", "spearman")
    is_class: ClassVar[bool] = False
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """Numbers consist of no names."""
        return ()

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """Each row's numbers, ranks, their squares and products, per model.

        Args:
            true: (rows,) correct numbers.
            answers: One (rows,) column of numbers per model.

        Returns:
            One sparse (rows, 11) matrix per model.

        Raises:
            ContractViolation: An answer is not a finite number.
        """
        from scipy.sparse import csr_array
        from scipy.stats import rankdata

        columns = [numbers_of(column) for column in (true, *answers)]
        for column in columns:
            wrong = np.flatnonzero(np.isnan(column))
            if len(wrong):
                raise ContractViolation(
                    f"answers: expected a finite number for each of {len(column)} rows, got "
                    f"something else for {len(wrong)}, first for row {wrong[0] + 1}"
                )
        numbers = [_standard(column) for column in columns]
        ranks = [_standard(rankdata(column)) for column in columns]
        return [
            csr_array(
                np.stack(
                    [
                        np.ones(len(numbers[0])),
                        *_terms(numbers[0], numbers[model]),
                        *_terms(ranks[0], ranks[model]),
                    ],
                    axis=1,
                )
            )
            for model in range(1, len(columns))
        ]


def _terms(true: np.ndarray, said: np.ndarray) -> tuple[np.ndarray, ...]:
    return true, said, true**2, said**2, true * said


def _standard(values: np.ndarray) -> np.ndarray:
    """The values with mean 0 and largest size 1, which no correlation sees; zeros if all equal.

    Sums of squares of large numbers that differ little would lose the difference.
    """
    if not len(values) or values.min() == values.max():
        return np.zeros(len(values))
    values = values / np.abs(values).max()
    values = values - values.mean()
    return values / np.abs(values).max()
