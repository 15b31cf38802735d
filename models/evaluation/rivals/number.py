"""A number for each row: ridge regression on TF-IDF and, for pairs, on how alike the texts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.answers.number import Number
from models.evaluation.ngram_features import PARTS, Grams, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival

NAME = "TF-IDF + ridge regression"
MAJORITY = "mean"
PENALTIES = (0.1, 1.0, 10.0)  # values tried for the ridge's alpha
DEFAULT = 1.0


class _Features:
    """TF-IDF of words and characters; of a pair, cosine and overlap of both texts instead."""

    def __init__(self, markings: Sequence[str], pairs: bool):
        more = {"seen": 0} if pairs else {}
        self._grams = [Grams(of, markings, **more) for of in PARTS["both"]]

    def fit(self, rows: RawRows) -> Any:
        columns = rows.columns
        # One set of n-grams for both texts of a pair, so that they can be compared.
        joined = [[text for column in columns for text in column]]
        for grams in self._grams:
            grams.fit(joined)
        return self.of(rows)

    def of(self, rows: RawRows) -> Any:
        if len(rows.columns) == 1:
            return stacked([grams.of(rows.columns) for grams in self._grams])
        parts = []
        for grams in self._grams:
            first, second = (grams.of([column]) for column in rows.columns)
            parts.append(np.asarray(first.multiply(second).sum(axis=1)).ravel())
            shared = np.asarray((first > 0).multiply(second > 0).sum(axis=1)).ravel()
            sizes = np.minimum(first.getnnz(axis=1), second.getnnz(axis=1))
            parts.append(shared / np.maximum(sizes, 1))
        lengths = np.log1p([[len(text) for text in column] for column in rows.columns])
        parts.append(np.abs(lengths[0] - lengths[1]))
        columns = np.array(parts)
        return np.vstack([columns, columns**2]).T


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn numbers; the penalty is chosen on the dev rows."""
    features = _Features(markings, len(train.columns) > 1)
    numbers = np.array([float(a) for a in train.answers])
    seen = features.fit(train)

    def machine(penalty: float) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge(alpha=penalty, random_state=0).fit(seen, numbers)

    def said(fitted: Any, rows: RawRows) -> list[str]:
        if not len(rows):
            return []
        return [repr(value) for value in fitted.predict(features.of(rows)).tolist()]

    penalty, score = DEFAULT, None
    if dev is not None:
        tried = [
            scores(Number(), dev.answers, said(machine(p), dev), [metric])[metric]
            for p in PENALTIES
        ]
        penalty, score = PENALTIES[int(np.argmax(tried))], max(tried)
    chosen = machine(penalty)
    return Rival(
        lambda rows: said(chosen, rows),
        repr(float(numbers.mean())),
        {"penalty": penalty, "score": score},
    )
