"""Metrics of labels against labels, on plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray, int], float]


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


def accuracy(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """Share of rows whose label is right."""
    counts = confusion(labels, predicted, num_labels)
    return float(np.trace(counts) / max(counts.sum(), 1))


def micro_f1(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """F1 over all decisions; with one label a row it equals accuracy."""
    return accuracy(labels, predicted, num_labels)


def label_f1(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> np.ndarray:
    """(N,) F1 of each label; 0 for a label that neither is nor is predicted."""
    counts = confusion(labels, predicted, num_labels)
    return 2 * np.diag(counts) / np.maximum(counts.sum(0) + counts.sum(1), 1)


def macro_f1(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """Mean of the labels' F1, over labels that occur in the rows or in the predictions."""
    counts = confusion(labels, predicted, num_labels)
    occurs = (counts.sum(0) + counts.sum(1)) > 0
    scores = label_f1(labels, predicted, num_labels)[occurs]
    return float(scores.mean()) if len(scores) else 0.0


def weighted_f1(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """Mean of the labels' F1, weighted by how often each is the true one."""
    counts = confusion(labels, predicted, num_labels)
    support = counts.sum(1)
    return float(label_f1(labels, predicted, num_labels) @ support / max(support.sum(), 1))


def balanced_accuracy(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """Mean over true labels of the share of their rows that is right."""
    counts = confusion(labels, predicted, num_labels)
    support = counts.sum(1)
    shares = np.diag(counts)[support > 0] / support[support > 0]
    return float(shares.mean()) if len(shares) else 0.0


def matthews(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """Matthews correlation, -1 to 1, for any number of labels (Gorodkin 2004)."""
    counts = confusion(labels, predicted, num_labels).astype(float)
    rows, true, said = counts.sum(), counts.sum(1), counts.sum(0)
    covariance = np.trace(counts) * rows - true @ said
    scale = np.sqrt((rows**2 - said @ said) * (rows**2 - true @ true))
    return float(covariance / scale) if scale else 0.0


METRICS: Mapping[str, Metric] = {
    "accuracy": accuracy,
    "micro_f1": micro_f1,
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
    from fourstage.errors import UnknownNameError

    for name in names:
        if name not in METRICS:
            raise UnknownNameError("metrics", name, "a classification metric", METRICS)
    return {name: METRICS[name](labels, predicted, num_labels) for name in names}
