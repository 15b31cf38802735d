"""A cheap baseline that sees: a linear SVM on words, statistics of regions, and their products.

A product of a word and a number of the picture, such as how many regions are yellow, says whether
what is told is there; neither of the two alone can.

Reference:
    Words beside features of the picture: Zhou et al. 2015, arXiv 1512.02167. Products are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fourstage.label_order import in_order
from models.answers.label import Label
from models.evaluation.ngram_features import Grams, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival, most_frequent
from models.evaluation.row_sample import drawn

COSTS = (0.01, 0.1, 1.0)  # values tried for the SVM's C; on a tie the lowest
DEFAULT = 0.1
MOST_ROWS = 5_000  # training rows, drawn by chance; products of more would fill memory
MOST_WORDS = 500  # n-grams of words that are multiplied, the commonest
MOST_NUMBERS = 256  # of a picture; a detector's are mixed into so many
_AT_ONCE = 1_000  # rows answered


def statistics(boxes: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Numbers of a picture: mean, maximum and sum over its regions, and how many there are.

    Args:
        boxes: (O, 4), one region or more.
        features: (O, E).

    Returns:
        (3 (E + 4) + 1,) float32.
    """
    told = np.concatenate([features, boxes], axis=1)
    parts = [told.mean(axis=0), told.max(axis=0), told.sum(axis=0), [len(told)]]
    return np.concatenate(parts).astype(np.float32)


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn labels of rows with pictures; the cost is chosen on the dev rows.

    Args:
        train: Training rows; those without an answer are left out.
        dev: Rows to choose the cost on; None for the default.
        metric: The metric for the choice.
        markings: Marker strings in the texts.
    """
    train = train.answered()
    dev = dev.answered() if dev is not None else None
    names = in_order(train.answers)
    if len(names) < 2:
        return Rival(lambda rows: names * len(rows), names[0], {"cost": DEFAULT, "score": None})
    majority = most_frequent(train.answers)
    if len(train) > MOST_ROWS:
        rng = np.random.default_rng(len(train))
        train = train.only(drawn(train.answers, MOST_ROWS, rng))
    features = _Features(train, markings)
    seen = features.of(train)

    def machine(cost: float) -> Any:
        from sklearn.svm import LinearSVC

        return LinearSVC(C=cost, tol=1e-2, random_state=0).fit(seen, train.answers)

    def said(machine: Any, rows: RawRows) -> list[str]:
        found: list[str] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = rows.only(range(start, min(start + _AT_ONCE, len(rows))))
            found += machine.predict(features.of(some)).tolist()
        return found

    cost, score = DEFAULT, None
    if dev is not None and len(dev):
        tried = [
            scores(Label(), dev.answers, said(machine(c), dev), [metric])[metric] for c in COSTS
        ]
        cost, score = COSTS[int(np.argmax(tried))], max(tried)
    fitted = machine(cost)
    return Rival(lambda rows: said(fitted, rows), majority, {"cost": cost, "score": score})


class _Features:
    """Words, numbers of the picture and products, each part about as long as a unit vector.

    Args:
        train: The rows that words and scales are learned from.
        markings: Marker strings in the texts.
    """

    def __init__(self, train: RawRows, markings: Sequence[str]):
        self._grams = Grams("words", markings)
        often = np.bincount(self._grams.fit(train.columns).indices)
        self._multiplied = np.sort(np.argsort(-often, kind="stable")[:MOST_WORDS])
        numbers = _numbers(train)
        self._mean, self._scale = numbers.mean(axis=0), numbers.std(axis=0)
        self._scale[self._scale == 0] = np.inf  # the same in every picture: it says nothing
        width = numbers.shape[1]
        self._mixing = None
        if width > MOST_NUMBERS:
            drawn = np.random.default_rng(width).standard_normal((width, MOST_NUMBERS))
            self._mixing = drawn / np.sqrt(MOST_NUMBERS)

    def of(self, rows: RawRows) -> Any:
        """Features (rows, D)."""
        from scipy.sparse import csr_matrix
        from sklearn.preprocessing import normalize

        words = self._grams.of(rows.columns)
        numbers = (_numbers(rows) - self._mean) / self._scale
        if self._mixing is not None:
            numbers = numbers @ self._mixing
        numbers /= np.sqrt(numbers.shape[1])
        multiplied = normalize(words[:, self._multiplied])
        products = _products(multiplied, numbers)
        return stacked([normalize(words), csr_matrix(numbers), products])


def _numbers(rows: RawRows) -> np.ndarray:
    assert rows.pictures is not None, "rows without pictures have another rival"
    return np.asarray(rows.pictures, np.float64)


def _products(words: Any, numbers: np.ndarray) -> Any:
    """Each word times each number, (rows, V S); words (rows, V) sparse, numbers (rows, S)."""
    from scipy.sparse import csr_matrix

    count, width = numbers.shape
    row = np.repeat(np.arange(count), np.diff(words.indptr))
    data = words.data[:, None] * numbers[row]
    indices = words.indices.astype(np.int64)[:, None] * width + np.arange(width)
    shape = (count, words.shape[1] * width)
    return csr_matrix((data.ravel(), indices.ravel(), words.indptr * width), shape=shape)
