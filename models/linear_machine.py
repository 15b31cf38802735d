"""A linear machine on TF-IDF, and what it says of training rows that it has not seen.

    counts (rows, buckets) → (1 + ln count) · idf, each kind of a row to length 1 → features x
      → linear SVM on x + linear SVM on x · r_n → margins (rows, N) → · factor → logits

r_n says of each bucket how much more often rows of label n have it than other rows (naive Bayes).
Both machines are linear in x, so that one kernel holds their sum. Rows of a rare label weigh more.
Of pairs, both machines also see how alike the two texts are: in standard deviations of the training
rows, of length 1 on average, as each kind of n-grams is.

Where a row has a set of labels, each label has machines of its own, and an offset beside its
factor, since nothing else says how often it is there.

A machine is all but sure of the rows it was fitted to. The logits of a training row are therefore
those of a machine that was fitted without any row of the same text. One factor makes logits of
margins: that under which these fit the answers best. Each answer is softened by one more row of
every label, without which a few rows, all right, would take the largest factor.

Reference:
    Joachims 1998, ECML; r_n: Wang and Manning 2012, "Baselines and Bigrams", 2.3 (there x is 0 or
    1, here TF-IDF); Wolpert 1992, Neural Networks 5 (stacked generalisation); the factor: Guo et
    al. 2017, arXiv 1706.04599, 4.2 (temperature), of sets factor and offset: Platt 1999, here on
    held-out training rows; the softened answers: Platt's 2.2, here for N labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

COST, RATIO_COST = 0.3, 1.0  # C of the SVM on x, and on x · r_n
SMOOTHING = 1.0  # rows of each label, and of the others, that have a bucket beside those that do
SEEN = 2  # training rows that a bucket must occur in
FOLDS = 5
FACTORS = (0.1, 50.0)  # smallest and largest factor on a margin
FAR = -2.0  # the sum of both machines' margins of a row that is far from a label
_FILE = "machine.safetensors"
_UNBOUND = 1e3  # C of the regression that calibrates: all but no penalty


@dataclass(frozen=True)
class Machine:
    """A linear machine on TF-IDF.

    Attributes:
        idf: (buckets,) float32; 0 for a bucket that too few training rows have.
        kernel: (buckets, N) float32.
        bias: (N,) float32.
        unseen: (rows, N) float32, logits of the training rows by machines that have not seen them.
        alike: (A, N) float32, weights of how alike two texts are (`models.layers.likeness`), or
            None.
    """

    idf: np.ndarray
    kernel: np.ndarray
    bias: np.ndarray
    unseen: np.ndarray
    alike: np.ndarray | None = None

    def write(self, folder: Path) -> None:
        """Write it to a folder, as safetensors."""
        there = {name: part for name, part in asdict(self).items() if part is not None}
        save_file(there, folder / _FILE)

    @classmethod
    def read(cls, folder: Path) -> Machine:
        """Read what `write` wrote."""
        return cls(**load_file(folder / _FILE))


def learned(
    counts: Any,
    labels: np.ndarray,
    num_labels: int,
    groups: Sequence[Any],
    kinds: int = 1,
    alike: np.ndarray | None = None,
) -> Machine:
    """Learn from training rows.

    Args:
        counts: (rows, buckets) sparse, n-grams of each row.
        labels: (rows,) label ids; or of sets (rows, N), 1 where a row has the label and 0 where it
            has not. -1 for a row that nothing is learned from.
        num_labels: N.
        groups: (rows,) rows of equal value are of one text, which is seen as a whole or not at all.
        kinds: Into how many equal parts the buckets fall; each is brought to length 1 by itself.
        alike: (rows, A), how alike the two texts of each row are.
    """
    alike = np.zeros((len(labels), 0)) if alike is None else alike
    mean, divisor, beside = standardised(alike)
    idf = inverse_frequency(counts)
    features = _with(weighted(counts, idf, kinds), beside)
    separated, calibrated = (_separated, factor_of) if labels.ndim == 1 else (_each, _platt)
    kernel, bias = separated(counts, features, labels, num_labels)
    fold = folds_of(groups)
    margins = np.zeros((len(labels), num_labels))
    for own in np.unique(fold):
        held, rest = np.flatnonzero(fold == own), np.flatnonzero(fold != own)
        if not len(rest):
            continue  # of one text nothing is held out
        of_fold = inverse_frequency(counts[rest])
        learning = _with(weighted(counts[rest], of_fold, kinds), beside, rest)
        parts = separated(counts[rest], learning, labels[rest], num_labels)
        asked = _with(weighted(counts[held], of_fold, kinds), beside, held)
        margins[held] = asked @ parts[0] + parts[1]
    factor, offset = calibrated(margins, labels)
    kernel, of_alike = np.split(factor * kernel, [len(idf)])
    of_alike = of_alike / divisor[:, None]  # from here on of likeness as it comes
    bias = factor * bias + offset - mean @ of_alike
    return Machine(
        idf.astype(np.float32),
        kernel.astype(np.float32),
        bias.astype(np.float32),
        (factor * margins + offset).astype(np.float32),
        of_alike.astype(np.float32) if of_alike.size else None,
    )


def standardised(alike: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How alike texts are, in standard deviations, each row divided so that its mean length is 1.

    Args:
        alike: (rows, A).

    Returns:
        (A,) what was subtracted; (A,) by what it was divided then; the result, (rows, A).
    """
    mean, deviation = alike.mean(axis=0), alike.std(axis=0)
    divisor = np.where(deviation > 0, deviation, 1.0) * np.sqrt(alike.shape[1])
    return mean, divisor, (alike - mean) / divisor


def _with(features: Any, alike: np.ndarray, rows: Any = slice(None)) -> Any:
    """Features (rows, buckets) and, beside them, how alike the texts of these rows are."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([features, csr_matrix(alike[rows])], format="csr")


def folds_of(groups: Sequence[Any]) -> np.ndarray:
    """(rows,) which of the `FOLDS` each row is held out in, with all rows of its text.

    Args:
        groups: (rows,) rows of equal value are of one text.
    """
    _, number = np.unique(np.asarray(groups, object), return_inverse=True)
    order = np.random.default_rng(0).permutation(number.max() + 1)
    return order[number] % FOLDS


def inverse_frequency(counts: Any, seen: int = SEEN) -> np.ndarray:
    """(buckets,) ln((1 + rows) / (1 + rows with the bucket)) + 1; 0 for one that too few have.

    Args:
        counts: (rows, buckets) sparse.
        seen: Rows that a bucket must occur in.
    """
    rows_with = np.bincount(counts.indices, minlength=counts.shape[1])
    # min: keep some even if every text is unique.
    kept = rows_with >= min(seen, rows_with.max(initial=0))
    return np.where(kept, np.log((1 + counts.shape[0]) / (1 + rows_with)) + 1, 0.0)


def weighted(counts: Any, idf: np.ndarray, kinds: int) -> Any:
    """(rows, buckets) sparse TF-IDF, each kind of a row of length 1; of counts, some twice."""
    made = counts.copy()
    made.data = (1 + np.log(counts.data)) * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    part = row * kinds + counts.indices // (counts.shape[1] // kinds)
    length = np.sqrt(np.bincount(part, made.data**2))[part]
    made.data = np.divide(made.data, length, out=np.zeros_like(length), where=length > 0)
    made.eliminate_zeros()
    made.sum_duplicates()
    return made


def _separated(
    counts: Any, features: Any, labels: np.ndarray, num_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel (features, N) and bias (N,): the sum of both SVMs, one label against the rest.

    A label that is not among the rows has the margin `FAR`. Of one label alone nothing is learned.
    """
    kernel, bias = np.zeros((features.shape[1], num_labels)), np.full(num_labels, FAR)
    known = np.flatnonzero(labels >= 0)
    there = np.unique(labels[known])
    if len(there) < 2:
        return kernel, np.zeros(num_labels)
    features, has, own = features[known], (counts[known] > 0).astype(np.float64), labels[known]
    plain, plain_bias = _fitted(features, own, COST)
    # Of two labels, the SVM has the margins of the second; the first has the opposite.
    ratios = np.ones(features.shape[1])  # 1 for likeness
    for place, label in enumerate(there if len(there) > 2 else there[1:]):
        ratios[: has.shape[1]] = _ratios(has, own == label)
        scaled, scaled_bias = _fitted(features.multiply(ratios).tocsr(), own == label, RATIO_COST)
        kernel[:, label] = plain[place] + ratios * scaled[0]
        bias[label] = plain_bias[place] + scaled_bias[0]
    if len(there) == 2:
        kernel[:, there[0]], bias[there[0]] = -kernel[:, there[1]], -bias[there[1]]
    return kernel, bias


def _each(
    counts: Any, features: Any, labels: np.ndarray, num_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel (features, N) and bias (N,) of sets: whether each label is there, by itself.

    All rows are far from a label that none has, and from the absence of one that all have.
    """
    kernel, bias = np.zeros((features.shape[1], num_labels)), np.full(num_labels, FAR)
    for label, own in enumerate(labels.T):
        there = np.unique(own[own >= 0])
        if len(there) == 2:
            parts = _separated(counts, features, own, 2)
            kernel[:, label], bias[label] = parts[0][:, 1], parts[1][1]
        elif there.any():
            bias[label] = -FAR
    return kernel, bias


def _ratios(has: Any, right: np.ndarray) -> np.ndarray:
    """(buckets,) log of the share of a bucket among those of the label's rows, and of the others'.

    Args:
        has: (rows, buckets) sparse, 1 where a row has a bucket.
        right: (rows,) whether a row has the label.
    """
    of_label, of_others = (
        SMOOTHING + np.asarray(has[rows].sum(axis=0)).ravel() for rows in (right, ~right)
    )
    return np.log(of_label / of_label.sum()) - np.log(of_others / of_others.sum())


def _fitted(features: Any, labels: np.ndarray, cost: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of a linear SVM, one label against the rest; a rare label weighs more.

    Returns:
        (labels, buckets) and (labels,); of two labels for the second alone.
    """
    from sklearn.svm import LinearSVC
    from threadpoolctl import threadpool_limits

    # 100 times liblinear's default tolerance: the same predictions in a third of the time.
    machine = LinearSVC(C=cost, tol=1e-2, class_weight="balanced", random_state=0)
    with threadpool_limits(limits=1):
        machine.fit(features, labels)
    return machine.coef_, np.atleast_1d(machine.intercept_)


def _platt(margins: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors and offsets (N,) of sets, under which each label's cross-entropy is smallest.

    A label is foreseen as often as it is there, where the factor is at its limit, too. One that all
    rows have, or none, has the factor 0.
    """
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    factor, offset = np.zeros(labels.shape[1]), np.zeros(labels.shape[1])
    for label, own in enumerate(labels.T):
        known = own >= 0
        there, number = np.count_nonzero(own == 1), np.count_nonzero(known)
        if 0 < there < number:
            yes, no = (there + 1) / (there + 2), 1 / (number - there + 2)
            softened = np.where(own[known] == 1, yes, no)
            weights = np.concatenate([softened, 1 - softened])
            twice, is_there = np.tile(margins[known, label], 2)[:, None], np.repeat([1, 0], number)
            with threadpool_limits(limits=1):
                fitted = LogisticRegression(C=_UNBOUND).fit(twice, is_there, weights)
            factor[label] = np.clip(fitted.coef_[0, 0], *FACTORS)
            offset[label] = _offset(factor[label] * margins[known, label], int(there))
        else:
            offset[label] = np.log((there + 1) / (number - there + 1))
    return factor, offset


def _offset(logits: np.ndarray, there: int) -> float:
    """What is added to logits so that their probabilities sum to `there`, from 1 to rows - 1."""
    from scipy.optimize import brentq
    from scipy.special import expit

    limit = float(np.abs(logits).max() + np.log(2 * len(logits)))
    found: Any = brentq(lambda more: float(expit(logits + more).sum()) - there, -limit, limit)
    return found


def factor_of(margins: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The factor on margins under which their softmax has the smallest cross-entropy; offset 0.

    Args:
        margins: (rows, N); -inf for a label that a row can't have.
        labels: (rows,) from 0 to N - 1, -1 for none.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    known = np.flatnonzero(labels >= 0)
    own = margins[known]
    there = np.isfinite(own)
    right = own[np.arange(len(known)), labels[known]]
    number = there.sum(axis=1)
    share = number / (len(known) + number)  # of the answer that falls on all labels alike
    softened = (1 - share) * right + share * own.mean(axis=1, where=there)

    def loss(log_factor: float) -> float:
        factor = np.exp(log_factor)
        return float((logsumexp(factor * own, axis=1) - factor * softened).mean())

    found: Any = minimize_scalar(loss, bounds=np.log(FACTORS), method="bounded")
    return float(np.exp(found.x)), 0.0
