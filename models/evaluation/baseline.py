"""Baselines for every model: a linear SVM on TF-IDF of words and characters, and the majority."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.answers.label import Label
from models.evaluation.resampling import scores

CHEAP = "TF-IDF + linear SVM"
MAJORITY = "majority class"
_PARTS = {"words": ("words",), "characters": ("characters",), "both": ("words", "characters")}
COSTS = (0.1, 0.3, 1.0)  # values tried for the SVM's C; larger ones take longer without gain
DEFAULT = ("both", 1.0)
WORDS, CHARACTERS = (1, 2), (3, 5)  # lengths of n-grams
BUCKETS = 1 << 20  # n-grams are hashed into buckets, so that memory is bounded
SEEN = 2  # an n-gram must occur in this many training rows
CHOSEN_ON = 10_000  # training rows for the choice; more take longer and lead to the same choice
_CJK = r"[\u3400-\u9fff\uf900-\ufaff]"


@dataclass(frozen=True)
class Texts:
    """Rows as raw texts and labels.

    Attributes:
        columns: The rows' first texts and, for pairs, their second texts.
        labels: (rows,) label ids, -1 for none.
    """

    columns: tuple[list[str], ...]
    labels: np.ndarray

    def only(self, rows: np.ndarray) -> Texts:
        """The rows with the given numbers."""
        return Texts(tuple([texts[i] for i in rows] for texts in self.columns), self.labels[rows])


@dataclass(frozen=True)
class Choice:
    """Features and cost chosen on the dev rows.

    Attributes:
        features: ``words``, ``characters`` or ``both``.
        cost: One of `COSTS`.
        score: Score on the dev rows; None if there are none and `DEFAULT` was used.
    """

    features: str
    cost: float
    score: float | None


def cheap_baseline(
    train: Texts,
    dev: Texts | None,
    asked: Sequence[Texts],
    *,
    metric: str,
    markings: Sequence[str] = (),
) -> tuple[list[np.ndarray], Choice]:
    """Label ids from a linear SVM on TF-IDF of n-grams (Joachims 1998; Wang and Manning 2012).

    The kind of n-grams (words, characters, both) and the cost are chosen on the dev rows. Each CJK
    character counts as a word, so that Chinese needs no segmenter. So does each marker string:
    without the markers around its two entities, all rows of a sentence would look the same.

    Args:
        train: Training rows.
        dev: Rows for choosing features and cost.
        asked: Sets of rows to predict.
        metric: Metric for the choice, one of `Label.metrics`.
        markings: Marker strings, such as those around entities.

    Returns:
        (rows,) int64 label ids for each of `asked`, and the choice.
    """
    learned = train.only(np.flatnonzero(train.labels >= 0))
    choice = Choice(*DEFAULT, None)
    if len(np.unique(learned.labels)) < 2:
        return [majority(learned.labels, len(rows.labels)) for rows in asked], choice
    if dev is not None and (dev.labels >= 0).any():
        labelled = dev.only(np.flatnonzero(dev.labels >= 0))
        choice = _choose(learned, labelled, metric, markings)
    grams = [_Grams(of, markings) for of in _PARTS[choice.features]]
    machine = _fitted(_stacked([g.fit(learned) for g in grams]), learned.labels, choice.cost)
    return [_predicted(machine, _stacked([g.of(rows) for g in grams])) for rows in asked], choice


def majority(train_labels: Sequence[int] | np.ndarray, rows: int) -> np.ndarray:
    """(rows,) int64: the most frequent training label; of several, the one with the lowest id."""
    counts = np.bincount(np.asarray(train_labels, dtype=np.int64))
    return np.full(rows, counts.argmax(), dtype=np.int64)


def _choose(learned: Texts, dev: Texts, metric: str, markings: Sequence[str]) -> Choice:
    """The best choice on the dev rows; on a tie, the one with fewer features or the lower cost."""
    if len(learned.labels) > CHOSEN_ON:
        rows = np.random.default_rng(len(learned.labels)).permutation(len(learned.labels))
        learned = learned.only(np.sort(rows[:CHOSEN_ON]))
    seen, asked = {}, {}
    for of in _PARTS["both"]:
        grams = _Grams(of, markings)
        seen[of], asked[of] = grams.fit(learned), grams.of(dev)

    def tried(features: str, cost: float) -> Choice:
        parts = _PARTS[features]
        machine = _fitted(_stacked([seen[of] for of in parts]), learned.labels, cost)
        predicted = _predicted(machine, _stacked([asked[of] for of in parts]))
        return Choice(features, cost, scores(Label(), dev.labels, predicted, [metric])[metric])

    choices = [tried(features, cost) for features in _PARTS for cost in COSTS]
    return max(choices, key=lambda choice: choice.score or 0.0)


class _Grams:
    """TF-IDF of one kind of n-grams, separately for each column of texts."""

    def __init__(self, of: str, markings: Sequence[str]):
        marks = "".join(f"{re.escape(marking)}|" for marking in markings)
        # The TF-IDF transformer normalises the rows.
        self._settings: dict[str, Any] = {"norm": None} | (
            {"token_pattern": rf"{marks}{_CJK}|(?:(?!{_CJK})\w)+", "ngram_range": WORDS}
            if of == "words"
            else {"analyzer": "char_wb", "ngram_range": CHARACTERS}
        )
        self._learned: list[tuple[np.ndarray, Any]] = []

    def fit(self, rows: Texts) -> Any:
        """Learn n-grams and their IDF weights; return the features (rows, D) of these rows."""
        from sklearn.feature_extraction.text import TfidfTransformer

        self._learned = []
        for counts in self._counted(rows):
            rows_with = np.bincount(counts.indices, minlength=BUCKETS)
            # min: keep some n-grams even if every text is unique.
            kept = np.flatnonzero(rows_with >= min(SEEN, rows_with.max()))
            weights = TfidfTransformer(sublinear_tf=True).fit(counts[:, kept])
            self._learned.append((kept, weights))
        return self.of(rows)

    def of(self, rows: Texts) -> Any:
        """Features (rows, D)."""
        parts = zip(self._learned, self._counted(rows), strict=True)
        return _stacked([weights.transform(counts[:, kept]) for (kept, weights), counts in parts])

    def _counted(self, rows: Texts) -> Iterator[Any]:
        from sklearn.feature_extraction.text import HashingVectorizer

        hashing = HashingVectorizer(n_features=BUCKETS, alternate_sign=False, **self._settings)
        return (hashing.transform(texts) for texts in rows.columns)


def _stacked(parts: Sequence[Any]) -> Any:
    from scipy.sparse import hstack

    return hstack(list(parts), format="csr")


def _fitted(features: Any, labels: np.ndarray, cost: float) -> Any:
    from sklearn.svm import LinearSVC

    # 100 times liblinear's default tolerance: the same predictions in a third of the time.
    return LinearSVC(C=cost, tol=1e-2, random_state=0).fit(features, labels)


def _predicted(machine: Any, features: Any) -> np.ndarray:
    return machine.predict(features).astype(np.int64)
