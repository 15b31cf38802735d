"""TF-IDF of n-grams of words and of characters, the features of the cheap baselines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from models.linear_machine import standardised

WORDS, CHARACTERS = (1, 2), (3, 5)  # lengths of n-grams
BUCKETS = 1 << 20  # n-grams are hashed into buckets, so that memory is bounded
SEEN = 2  # training rows that an n-gram must occur in
PARTS = {"words": ("words",), "characters": ("characters",), "both": ("words", "characters")}
_CJK = r"[\u3400-\u9fff\uf900-\ufaff]"

Columns = Sequence[Sequence[str]]  # the rows' first texts, their second texts, …


class Grams:
    """TF-IDF of one kind of n-grams, separately for each column of texts.

    Each CJK character counts as a word, so that Chinese needs no segmenter. So does each marker
    string: without the markers around its entities, all rows of a sentence would look the same.

    Args:
        of: ``words`` or ``characters``.
        markings: Marker strings, such as those around entities.
        seen: An n-gram must occur in this many training rows; 0 for none, to compare texts.
    """

    def __init__(self, of: str, markings: Sequence[str], seen: int = SEEN):
        self._seen = seen
        marks = "".join(f"{re.escape(marking)}|" for marking in markings)
        # The TF-IDF transformer normalises the rows.
        self._settings: dict[str, Any] = {"norm": None} | (
            {"token_pattern": rf"{marks}{_CJK}|(?:(?!{_CJK})\w)+", "ngram_range": WORDS}
            if of == "words"
            else {"analyzer": "char_wb", "ngram_range": CHARACTERS}
        )
        self._learned: list[tuple[np.ndarray, Any]] = []

    def fit(self, columns: Columns) -> Any:
        """Learn n-grams and their IDF weights; return the features (rows, D) of these rows."""
        from sklearn.feature_extraction.text import TfidfTransformer

        self._learned = []
        for counts in self._counted(columns):
            rows_with = np.bincount(counts.indices, minlength=BUCKETS)
            # min: keep some n-grams even if every text is unique.
            kept = np.flatnonzero(rows_with >= min(self._seen, rows_with.max()))
            weights = TfidfTransformer(sublinear_tf=True).fit(counts[:, kept])
            self._learned.append((kept, weights))
        return self.of(columns)

    def of(self, columns: Columns) -> Any:
        """Features (rows, D)."""
        parts = zip(self._learned, self._counted(columns), strict=True)
        return stacked([weights.transform(counts[:, kept]) for (kept, weights), counts in parts])

    def _counted(self, columns: Columns) -> Iterator[Any]:
        from sklearn.feature_extraction.text import HashingVectorizer

        hashing = HashingVectorizer(n_features=BUCKETS, alternate_sign=False, **self._settings)
        return (hashing.transform(texts) for texts in columns)


class Likeness:
    """How alike the two texts of pairs are, by their n-grams, which have one TF-IDF for both.

    For each kind of n-grams their cosine, and the share of the shorter text's that the other has;
    then the difference of the logarithms of their lengths; then the squares of all these.

    Args:
        markings: Marker strings, as of `Grams`.
    """

    def __init__(self, markings: Sequence[str]):
        self._grams = [Grams(of, markings, seen=0) for of in PARTS["both"]]

    def fit(self, columns: Columns) -> np.ndarray:
        """Learn IDF weights; return the features (rows, A) of these rows."""
        for grams in self._grams:
            grams.fit([[text for column in columns for text in column]])
        return self.of(columns)

    def of(self, columns: Columns) -> np.ndarray:
        """Features (rows, A)."""
        parts = []
        for grams in self._grams:
            first, second = (grams.of([column]) for column in columns)
            parts.append(np.asarray(first.multiply(second).sum(axis=1)).ravel())
            shared = np.asarray((first > 0).multiply(second > 0).sum(axis=1)).ravel()
            sizes = np.minimum(first.getnnz(axis=1), second.getnnz(axis=1))
            parts.append(shared / np.maximum(sizes, 1))
        lengths = np.log1p([[len(text) for text in column] for column in columns])
        parts.append(np.abs(lengths[0] - lengths[1]))
        found = np.array(parts)
        return np.vstack([found, found**2]).T


class Alike:
    """`Likeness` of pairs in standard deviations, of length 1 on average; of single texts nothing.

    Args:
        markings: Marker strings, as of `Grams`.
    """

    def __init__(self, markings: Sequence[str]):
        self._likeness = Likeness(markings)

    def fit(self, columns: Columns) -> np.ndarray:
        """Learn means and deviations; return the features (rows, A) of these rows, or (rows, 0)."""
        if len(columns) != 2:
            return np.zeros((len(columns[0]), 0))
        self._mean, self._divisor, found = standardised(self._likeness.fit(columns))
        return found

    def of(self, columns: Columns) -> np.ndarray:
        """Features (rows, A), or (rows, 0)."""
        if len(columns) != 2:
            return np.zeros((len(columns[0]), 0))
        return (self._likeness.of(columns) - self._mean) / self._divisor


def stacked(parts: Sequence[Any]) -> Any:
    """Parts (rows, D) side by side."""
    from scipy.sparse import hstack

    return hstack(list(parts), format="csr")
