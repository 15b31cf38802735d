"""Metrics of labels against labels, all of them functions of the confusion counts.

Counts may have leading axes, so that thousands of resampled tables are scored at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fourstage.errors import UnknownNameError

Metric = Callable[[np.ndarray], np.ndarray]  # (..., N, N) counts -> (...) scores


def confusion(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> np.ndarray:
    """(N, N) counts: row the true label, column the predicted one. Rows with label -1 are left out.

    Args:
        labels: (rows,) true label ids, -1 for none.
        predicted: (rows,) label ids.
        num_labels: N.
    """
    labels, predicted = np.asarray(labels), np.asarray(predicted)
    known = labels >= 0
    pairs = labels[known].astype(np.int64) * num_labels + predicted[known]
    return np.bincount(pairs, minlength=num_labels**2).reshape(num_labels, num_labels)


def accuracy(counts: np.ndarray) -> np.ndarray:
    """Share of rows whose label is right; with one label a row micro-F1 equals it."""
    return _hits(counts).sum(-1) / np.maximum(counts.sum((-2, -1)), 1)


def label_f1(counts: np.ndarray) -> np.ndarray:
    """(..., N) F1 of each label; 0 for a label that neither is nor is predicted."""
    return 2 * _hits(counts) / np.maximum(_true(counts) + _said(counts), 1)


def left_out(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> np.ndarray:
    """Ids of the labels that `macro_f1` leaves out: no row has them and nobody predicted them."""
    counts = confusion(labels, predicted, num_labels)
    return np.flatnonzero(_true(counts) + _said(counts) == 0)


def macro_f1(counts: np.ndarray) -> np.ndarray:
    """Mean of the labels' F1, over labels that occur in the rows or in the predictions."""
    occurs = (_true(counts) + _said(counts)) > 0
    return label_f1(counts).sum(-1) / np.maximum(occurs.sum(-1), 1)


def weighted_f1(counts: np.ndarray) -> np.ndarray:
    """Mean of the labels' F1, weighted by how often each is the true one."""
    support = _true(counts)
    return (label_f1(counts) * support).sum(-1) / np.maximum(support.sum(-1), 1)


def balanced_accuracy(counts: np.ndarray) -> np.ndarray:
    """Mean over true labels of the share of their rows that is right."""
    support = _true(counts)
    shares = _hits(counts) / np.maximum(support, 1)
    return shares.sum(-1) / np.maximum((support > 0).sum(-1), 1)


def matthews(counts: np.ndarray) -> np.ndarray:
    """Matthews correlation, -1 to 1, for any number of labels (Gorodkin 2004)."""
    counts = np.asarray(counts, float)
    rows, true, said = counts.sum((-2, -1)), _true(counts), _said(counts)
    covariance = _hits(counts).sum(-1) * rows - (true * said).sum(-1)
    scale = (rows**2 - (said**2).sum(-1)) * (rows**2 - (true**2).sum(-1))
    return np.where(scale > 0, covariance / np.sqrt(np.where(scale > 0, scale, 1)), 0.0)


METRICS: Mapping[str, Metric] = {
    "accuracy": accuracy,
    "micro_f1": accuracy,
    "macro_f1": macro_f1,
    "weighted_f1": weighted_f1,
    "balanced_accuracy": balanced_accuracy,
    "matthews": matthews,
}


def evaluate(
    labels: np.ndarray, predicted: np.ndarray, num_labels: int, names: Sequence[str]
) -> dict[str, float]:
    """{metric: value} for the names asked.

    Raises:
        UnknownNameError: If a name is not in `METRICS`.
    """
    for name in names:
        if name not in METRICS:
            raise UnknownNameError("metrics", name, "a classification metric", METRICS)
    counts = confusion(labels, predicted, num_labels)
    return {name: float(METRICS[name](counts)) for name in names}


def _hits(counts: np.ndarray) -> np.ndarray:
    return np.diagonal(counts, axis1=-2, axis2=-1)


def _true(counts: np.ndarray) -> np.ndarray:
    return counts.sum(-1)


def _said(counts: np.ndarray) -> np.ndarray:
    return counts.sum(-2)
