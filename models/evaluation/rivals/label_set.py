"""A set of labels for each row: a linear SVM for each label on TF-IDF of words and characters.

Of pairs they also see how alike the two texts are (`ngram_features.Alike`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.answers.label_set import LabelSet, set_of, written
from models.evaluation.ngram_features import PARTS, Alike, Grams, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival, most_frequent

NAME = "TF-IDF + linear SVMs"
MAJORITY = "most frequent set"
COSTS = (0.1, 0.3, 1.0)


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn whether a row has each label; the cost is chosen on the dev rows."""
    labels = LabelSet.names(train.answers)
    parts = [*(Grams(of, markings) for of in PARTS["both"]), Alike(markings)]
    features = stacked([each.fit(train.columns) for each in parts])
    has = np.array([[name in (set_of(a) or ()) for name in labels] for a in train.answers])

    def machines(cost: float) -> list[Any]:
        from sklearn.svm import LinearSVC

        return [
            LinearSVC(C=cost, tol=1e-2, random_state=0).fit(features, own)
            if 0 < own.sum() < len(own)
            else bool(own[0])
            for own in has.T
        ]

    def said(fitted: Sequence[Any], rows: RawRows) -> list[str]:
        if not len(rows):
            return []
        asked = stacked([each.of(rows.columns) for each in parts])
        there = np.array(
            [
                np.full(len(rows), each) if isinstance(each, bool) else each.predict(asked)
                for each in fitted
            ]
        ).reshape(len(labels), len(rows))
        return [
            written(name for name, own in zip(labels, row, strict=True) if own) for row in there.T
        ]

    cost, score = COSTS[-1], None
    if dev is not None:
        tried = [
            scores(LabelSet(), dev.answers, said(machines(c), dev), [metric])[metric] for c in COSTS
        ]
        cost, score = COSTS[int(np.argmax(tried))], max(tried)
    chosen = machines(cost)
    facts = {"features": "both", "cost": cost, "score": score}
    majority = written(set_of(most_frequent(train.answers)) or ())
    return Rival(lambda rows: said(chosen, rows), majority, facts)
