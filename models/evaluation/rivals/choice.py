"""One of each row's choices: the one that a linear SVM on TF-IDF finds most like the right ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.answers.choice import Choice
from models.evaluation.ngram_features import PARTS, Grams, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival, most_frequent

NAME = "TF-IDF + linear SVM"
MAJORITY = "most frequent place"
COST = 0.1


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn which texts are right choices, from their n-grams and those they share with the row."""
    from sklearn.svm import LinearSVC

    grams = [Grams(of, markings) for of in PARTS["both"]]
    for each in grams:
        each.fit([[*train.columns[-1], *(c for row in train.choices or () for c in row)]])

    def features(rows: RawRows) -> Any:
        texts = rows.columns[-1]
        of = [(texts[i], choice) for i, row in enumerate(rows.choices or ()) for choice in row]
        parts = []
        for each in grams:
            asked, chosen = (each.of([list(column)]) for column in zip(*of, strict=True))
            parts += [chosen, asked.multiply(chosen)]
        return stacked(parts)

    right = [
        n == int(answer)
        for answer, row in zip(train.answers, train.choices or (), strict=True)
        for n in range(len(row))
    ]
    machine = LinearSVC(C=COST, tol=1e-2, random_state=0).fit(features(train), right)

    def said(rows: RawRows) -> list[str]:
        if not len(rows):
            return []
        ends = np.cumsum([len(row) for row in rows.choices or ()])[:-1]
        likely = np.split(machine.decision_function(features(rows)), ends)
        return [str(int(row.argmax())) for row in likely]

    score = None
    if dev is not None:
        score = scores(Choice(), dev.answers, said(dev), [metric])[metric]
    return Rival(said, most_frequent(train.answers), {"cost": COST, "score": score})
