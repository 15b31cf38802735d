"""A linear machine on TF-IDF, and what it says of training rows that it has not seen.

    counts (rows, buckets) → (1 + ln count) · idf, each kind of a row to length 1
      → linear SVM → margins (rows, N) → · factor → logits

A machine is all but sure of the rows it was fitted to, so that nothing would be left to learn for a
network beside it. The logits of a training row are therefore those of a machine that was fitted
without any row of the same text. One factor makes logits of margins: that under which these fit the
answers best.

Reference:
    Joachims 1998, ECML; Wolpert 1992, Neural Networks 5 (stacked generalisation); the factor: Guo
    et al. 2017, arXiv 1706.04599, 4.2 (temperature), here on held-out training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

COST = 1.0  # the SVM's C
SEEN = 2  # training rows that a bucket must occur in
FOLDS = 5
FACTORS = (0.1, 50.0)  # smallest and largest factor on a margin


@dataclass(frozen=True)
class Machine:
    """A linear machine on TF-IDF.

    Attributes:
        idf: (buckets,) float32; 0 for a bucket that too few training rows have.
        kernel: (buckets, N) float32.
        bias: (N,) float32.
        unseen: (rows, N) float32, logits of the training rows by machines that have not seen them.
    """

    idf: np.ndarray
    kernel: np.ndarray
    bias: np.ndarray
    unseen: np.ndarray


def learned(
    counts: Any, labels: np.ndarray, num_labels: int, groups: Sequence[Any], kinds: int = 1
) -> Machine:
    """Learn from training rows.

    Args:
        counts: (rows, buckets) sparse, n-grams of each row.
        labels: (rows,) label ids, -1 for a row that nothing is learned from.
        num_labels: N.
        groups: (rows,) rows of equal value are of one text, which is seen as a whole or not at all.
        kinds: Into how many equal parts the buckets fall; each is brought to length 1 by itself.
    """
    idf = _idf(counts)
    features = _weighted(counts, idf, kinds)
    kernel, bias = _separated(features, labels, num_labels)
    _, number = np.unique(np.asarray(groups, object), return_inverse=True)
    order = np.random.default_rng(0).permutation(number.max() + 1)
    fold = order[number] % FOLDS
    margins = np.zeros((len(labels), num_labels))
    for own in np.unique(fold) if number.max() else ():  # of one text nothing is held out
        held, rest = np.flatnonzero(fold == own), np.flatnonzero(fold != own)
        of_fold = _idf(counts[rest])
        parts = _separated(_weighted(counts[rest], of_fold, kinds), labels[rest], num_labels)
        margins[held] = _weighted(counts[held], of_fold, kinds) @ parts[0] + parts[1]
    factor = _factor(margins, labels)
    return Machine(
        idf.astype(np.float32),
        (factor * kernel).astype(np.float32),
        (factor * bias).astype(np.float32),
        (factor * margins).astype(np.float32),
    )


def _idf(counts: Any) -> np.ndarray:
    """(buckets,) ln((1 + rows) / (1 + rows with the bucket)) + 1."""
    rows_with = np.bincount(counts.indices, minlength=counts.shape[1])
    # min: keep some even if every text is unique.
    kept = rows_with >= min(SEEN, rows_with.max(initial=0))
    return np.where(kept, np.log((1 + counts.shape[0]) / (1 + rows_with)) + 1, 0.0)


def _weighted(counts: Any, idf: np.ndarray, kinds: int) -> Any:
    """(rows, buckets) sparse TF-IDF, each kind of a row of length 1."""
    made = counts.copy()
    made.data = (1 + np.log(counts.data)) * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    part = row * kinds + counts.indices // (counts.shape[1] // kinds)
    length = np.sqrt(np.bincount(part, made.data**2))[part]
    made.data = np.divide(made.data, length, out=np.zeros_like(length), where=length > 0)
    made.eliminate_zeros()
    return made


def _separated(features: Any, labels: np.ndarray, num_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Kernel (buckets, N) and bias (N,) of a linear SVM, one label against the rest.

    A label that is not among the rows has the margin -1, that of a row far from it. Of one label
    alone nothing is learned.
    """
    from sklearn.svm import LinearSVC
    from threadpoolctl import threadpool_limits

    kernel, bias = np.zeros((features.shape[1], num_labels)), np.full(num_labels, -1.0)
    known = np.flatnonzero(labels >= 0)
    there = np.unique(labels[known])
    if len(there) < 2:
        return kernel, np.zeros(num_labels)
    # 100 times liblinear's default tolerance: the same predictions in a third of the time.
    machine = LinearSVC(C=COST, tol=1e-2, random_state=0)
    with threadpool_limits(limits=1):
        machine.fit(features[known], labels[known])
    coefficients, intercepts = machine.coef_, machine.intercept_
    if len(there) == 2:  # the SVM has the margin of the second label alone
        coefficients = np.concatenate([-coefficients, coefficients])
        intercepts = np.concatenate([-intercepts, intercepts])
    kernel[:, there], bias[there] = coefficients.T, intercepts
    return kernel, bias


def _factor(margins: np.ndarray, labels: np.ndarray) -> float:
    """The factor on margins under which their softmax has the smallest cross-entropy."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    known = np.flatnonzero(labels >= 0)
    own = margins[known]
    right = own[np.arange(len(known)), labels[known]]

    def loss(log_factor: float) -> float:
        factor = np.exp(log_factor)
        return float((logsumexp(factor * own, axis=1) - factor * right).mean())

    found: Any = minimize_scalar(loss, bounds=np.log(FACTORS), method="bounded")
    return float(np.exp(found.x))
