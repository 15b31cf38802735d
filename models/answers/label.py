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
    """(..., N) F1 of each label; 0 for a label that neither occurs nor is predicted.

    Args:
        counts: (..., N, N) confusion matrices, or (..., N, N + 1) with answers that are no label.
    """
    return 2 * _hits(counts) / np.maximum(_true(counts) + _predicted(counts), 1)


def _accuracy(counts: np.ndarray) -> np.ndarray:
    """Share of rows with the correct label."""
    return _hits(counts).sum(-1) / np.maximum(counts.sum((-2, -1)), 1)


def _micro_f1(counts: np.ndarray) -> np.ndarray:
    """F1 of all labels together; equals accuracy where each answer is a label."""
    there = _true(counts).sum(-1) + _predicted(counts).sum(-1)
    return 2 * _hits(counts).sum(-1) / np.maximum(there, 1)


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
    said = counts.sum(-2)  # with what is no label
    scale = (rows**2 - (said**2).sum(-1)) * (rows**2 - (true**2).sum(-1))
    return np.where(scale > 0, covariance / np.sqrt(np.where(scale > 0, scale, 1)), 0.0)


def _hits(counts: np.ndarray) -> np.ndarray:
    return np.diagonal(counts, axis1=-2, axis2=-1)


def _true(counts: np.ndarray) -> np.ndarray:
    return counts.sum(-1)


def _predicted(counts: np.ndarray) -> np.ndarray:
    return counts.sum(-2)[..., : counts.shape[-2]]


def _of_sums(metric: Metric) -> Metric:
    """Turn a metric of matrices (..., N, N + 1) into a metric of flat sums (..., N · (N + 1))."""

    def of(sums: np.ndarray) -> np.ndarray:
        size = isqrt(sums.shape[-1])
        return metric(sums.reshape(*sums.shape[:-1], size, size + 1))

    return of


class Label:
    """A kind of answer: one label per row.

    Attributes:
        metrics: {name: metric of a flat confusion matrix (..., N · (N + 1)), whose last column is
            of answers that are no label}.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "accuracy": _of_sums(_accuracy),
        "micro_f1": _of_sums(_micro_f1),
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
            answers: One (rows,) column of labels per model; "" for an answer that is no label,
                which is wrong and no class of its own.

        Returns:
            One sparse (rows, N · (N + 1)) matrix per model, with a single 1 in each row, where N is
            the number of labels that occur, sorted.
        """
        from scipy.sparse import csr_array

        names, numbers = np.unique(
            np.concatenate([np.asarray(column) for column in (true, *answers)]), return_inverse=True
        )
        size, rows = len(names), len(true)
        columns = numbers.reshape(1 + len(answers), rows)
        if size > 1 and isinstance(names[0], str) and not names[0] and columns[0].all():
            size -= 1
            columns = np.where(columns == 0, size, columns - 1)
        size = max(size, 1)
        return [
            csr_array(
                (np.ones(rows), (np.arange(rows), columns[0] * (size + 1) + predicted)),
                shape=(rows, size * (size + 1)),
            )
            for predicted in columns[1:]
        ]
