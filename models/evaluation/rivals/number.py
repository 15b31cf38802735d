"""A number for each row: ridge regression on TF-IDF and, for pairs, on how alike the texts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.answers.number import Number
from models.evaluation.ngram_features import PARTS, Grams, Likeness, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival

NAME = "TF-IDF + ridge regression"
MAJORITY = "mean"
PENALTIES = (0.1, 1.0, 10.0)  # values tried for the ridge's alpha
DEFAULT = 1.0


class _Features:
    """TF-IDF of words and characters; of a pair, how alike both texts are instead."""

    def __init__(self, markings: Sequence[str], pairs: bool):
        self._likeness = Likeness(markings) if pairs else None
        self._grams = [Grams(of, markings) for of in PARTS["both"]]

    def fit(self, rows: RawRows) -> Any:
        if self._likeness is not None:
            return self._likeness.fit(rows.columns)
        return stacked([grams.fit(rows.columns) for grams in self._grams])

    def of(self, rows: RawRows) -> Any:
        if self._likeness is not None:
            return self._likeness.of(rows.columns)
        return stacked([grams.of(rows.columns) for grams in self._grams])


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
