"""A class for each row: a linear SVM on TF-IDF of words and characters, and the majority class.

Of pairs it also sees how alike the two texts are (`ngram_features.Likeness`).

Reference:
    Joachims 1998; Wang and Manning 2012, "Baselines and Bigrams".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fourstage.label_order import in_order
from models.answers.label import Label
from models.evaluation.ngram_features import PARTS, Columns, Grams, Likeness, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival, most_frequent
from models.linear_machine import standardised

NAME = "TF-IDF + linear SVM"
MAJORITY = "majority class"
COSTS = (0.1, 0.3, 1.0)  # values tried for the SVM's C; larger ones take longer without gain
DEFAULT = ("both", 1.0)
CHOSEN_ON = 10_000  # training rows for the choice; more take longer and lead to the same choice


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn labels; the kind of n-grams and the cost are chosen on the dev rows."""
    names = in_order(train.answers)
    if len(names) < 2:
        return Rival(lambda rows: names * len(rows), names[0], _facts(*DEFAULT, None))
    facts = _chosen(train, dev, metric, markings) if dev is not None else _facts(*DEFAULT, None)
    grams = [Grams(of, markings) for of in PARTS[facts["features"]]]
    alike = _Alike(markings)
    features = stacked([each.fit(train.columns) for each in grams] + alike.fit(train.columns))
    machine = _fitted(features, train.answers, facts["cost"])

    def answer(rows: RawRows) -> list[str]:
        if not len(rows):
            return []
        asked = [each.of(rows.columns) for each in grams] + alike.of(rows.columns)
        return _predicted(machine, stacked(asked))

    return Rival(answer, most_frequent(train.answers), facts)


class _Alike:
    """How alike the texts of pairs are, of length 1 on average; nothing of single texts."""

    def __init__(self, markings: Sequence[str]):
        self._likeness = Likeness(markings)

    def fit(self, columns: Columns) -> list[np.ndarray]:
        """[(rows, A)] of these rows, or []."""
        if len(columns) == 1:
            return []
        self._mean, self._divisor, beside = standardised(self._likeness.fit(columns))
        return [beside]

    def of(self, columns: Columns) -> list[np.ndarray]:
        """[(rows, A)], or []."""
        if len(columns) == 1:
            return []
        return [(self._likeness.of(columns) - self._mean) / self._divisor]


def _facts(features: str, cost: float, score: float | None) -> dict[str, Any]:
    return {"features": features, "cost": cost, "score": score}


def _chosen(train: RawRows, dev: RawRows, metric: str, markings: Sequence[str]) -> dict[str, Any]:
    """The best on the dev rows; on a tie, the one with fewer features or the lower cost."""
    if len(train) > CHOSEN_ON:
        rows = np.random.default_rng(len(train)).permutation(len(train))
        train = train.only(np.sort(rows[:CHOSEN_ON]))
    seen, asked = {}, {}
    for of in PARTS["both"]:
        grams = Grams(of, markings)
        seen[of], asked[of] = grams.fit(train.columns), grams.of(dev.columns)
    alike = _Alike(markings)
    of_seen, of_asked = alike.fit(train.columns), alike.of(dev.columns)

    def tried(features: str, cost: float) -> dict[str, Any]:
        parts = PARTS[features]
        machine = _fitted(stacked([seen[of] for of in parts] + of_seen), train.answers, cost)
        predicted = _predicted(machine, stacked([asked[of] for of in parts] + of_asked))
        score = scores(Label(), dev.answers, predicted, [metric])[metric]
        return _facts(features, cost, score)

    choices = [tried(features, cost) for features in PARTS for cost in COSTS]
    return max(choices, key=lambda choice: choice["score"])


def _fitted(features: Any, labels: Sequence[str], cost: float) -> Any:
    from sklearn.svm import LinearSVC

    # 100 times liblinear's default tolerance: the same predictions in a third of the time.
    return LinearSVC(C=cost, tol=1e-2, random_state=0).fit(features, labels)


def _predicted(machine: Any, features: Any) -> list[str]:
    return machine.predict(features).tolist()
