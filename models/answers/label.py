"""One label per row, with metrics computed from the confusion matrix.

scikit-learn's metrics do not take leading axes, and thousands of resampled confusion matrices are
scored at once here. The tests compare every metric with scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isqrt
from typing import Any, ClassVar

import numpy as np

from fourstage.label_order import in_order
from models.protocols import Column, Metric


def confusion(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> np.ndarray:
    """The confusion matrix (N, N): rows are true labels, columns predicted labels.

    Args:
        labels: (rows,) true label ids.
        predicted: (rows,) label ids.
        num_labels: N.
    """
    pairs = np.asarray(labels).astype(np.int64) * num_labels + predicted
    return np.bincount(pairs, minlength=num_labels**2).reshape(num_labels, num_labels)


def label_f1(counts: np.ndarray) -> np.ndarray:
    """(..., N) F1 of each label; 0 for a label that neither occurs nor is predicted."""
    return 2 * _hits(counts) / np.maximum(_true(counts) + _predicted(counts), 1)


def _accuracy(counts: np.ndarray) -> np.ndarray:
    """Share of rows with the correct label; equals micro-F1 for one label per row."""
    return _hits(counts).sum(-1) / np.maximum(counts.sum((-2, -1)), 1)


def _macro_f1(counts: np.ndarray) -> np.ndarray:
    """Mean F1 of the labels that occur in the rows or in the predictions."""
    occurs = (_true(counts) + _predicted(counts)) > 0
    return label_f1(counts).sum(-1) / np.maximum(occurs.sum(-1), 1)


def _weighted_f1(counts: np.ndarray) -> np.ndarray:
    """Mean F1 of the labels, weighted by their number of rows."""
    support = _true(counts)
    return (label_f1(counts) * support).sum(-1) / np.maximum(support.sum(-1), 1)


def _balanced_accuracy(counts: np.ndarray) -> np.ndarray:
    """Mean recall of the labels that occur in the rows."""
    support = _true(counts)
    shares = _hits(counts) / np.maximum(support, 1)
    return shares.sum(-1) / np.maximum((support > 0).sum(-1), 1)


def _matthews(counts: np.ndarray) -> np.ndarray:
    """Matthews correlation, -1 to 1, for any number of labels (Gorodkin 2004)."""
    rows, true, predicted = counts.sum((-2, -1)), _true(counts), _predicted(counts)
    covariance = _hits(counts).sum(-1) * rows - (true * predicted).sum(-1)
    scale = (rows**2 - (predicted**2).sum(-1)) * (rows**2 - (true**2).sum(-1))
    return np.where(scale > 0, covariance / np.sqrt(np.where(scale > 0, scale, 1)), 0.0)


def _hits(counts: np.ndarray) -> np.ndarray:
    return np.diagonal(counts, axis1=-2, axis2=-1)


def _true(counts: np.ndarray) -> np.ndarray:
    return counts.sum(-1)


def _predicted(counts: np.ndarray) -> np.ndarray:
    return counts.sum(-2)


def _of_sums(metric: Metric) -> Metric:
    """Turn a metric of matrices (..., N, N) into a metric of flat sums (..., N · N)."""

    def of(sums: np.ndarray) -> np.ndarray:
        size = isqrt(sums.shape[-1])
        return metric(sums.reshape(*sums.shape[:-1], size, size))

    return of


class Label:
    """A kind of answer: one label per row.

    Attributes:
        metrics: {name: metric of a flat confusion matrix (..., N · N)}.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "accuracy": _of_sums(_accuracy),
        "micro_f1": _of_sums(_accuracy),
        "macro_f1": _of_sums(_macro_f1),
        "weighted_f1": _of_sums(_weighted_f1),
        "balanced_accuracy": _of_sums(_balanced_accuracy),
        "matthews": _of_sums(_matthews),
    }

    usual: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1")
    is_class: ClassVar[bool] = True
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """The labels, in the order of a classifier's outputs."""
        return tuple(in_order(answer for answer in answers if answer))

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """Each row's cell of the flat confusion matrix, per model.

        Args:
            true: (rows,) correct labels, by name or by number.
            answers: One (rows,) column of labels per model.

        Returns:
            One sparse (rows, N · N) matrix per model, with a single 1 in each row, where N is the
            number of labels that occur, sorted.
        """
        from scipy.sparse import csr_array

        names, numbers = np.unique(
            np.concatenate([np.asarray(column) for column in (true, *answers)]), return_inverse=True
        )
        size, rows = max(len(names), 1), len(true)
        columns = numbers.reshape(1 + len(answers), rows)
        return [
            csr_array(
                (np.ones(rows), (np.arange(rows), columns[0] * size + predicted)),
                shape=(rows, size**2),
            )
            for predicted in columns[1:]
        ]
