"""A class for each row: a linear SVM on TF-IDF of words and characters, and the majority class.

Of pairs it also sees how alike the two texts are (`ngram_features.Alike`).

Reference:
    Joachims 1998; Wang and Manning 2012, "Baselines and Bigrams".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fourstage.label_order import in_order
from models.answers.label import Label
from models.evaluation.ngram_features import PARTS, Alike, Grams, stacked
from models.evaluation.resampling import scores
from models.evaluation.rivals import RawRows, Rival, most_frequent
from models.evaluation.row_sample import drawn

NAME = "TF-IDF + linear SVM"
MAJORITY = "majority class"
COSTS = (0.1, 0.3, 1.0)  # values tried for the SVM's C; larger ones take longer without gain
DEFAULT = ("both", 1.0)
ALIKE = "alike"
CHOSEN_ON = 10_000  # training rows for the choice; more take longer and lead to the same choice


def fit(train: RawRows, dev: RawRows | None, metric: str, markings: Sequence[str]) -> Rival:
    """Learn labels; the kind of n-grams and the cost are chosen on the dev rows."""
    names = in_order(train.answers)
    if len(names) < 2:
        return Rival(lambda rows: names * len(rows), names[0], _facts(*DEFAULT, None))
    facts = _chosen(train, dev, metric, markings) if dev is not None else _facts(*DEFAULT, None)
    parts = [*(Grams(of, markings) for of in PARTS[facts["features"]]), Alike(markings)]
    features = stacked([each.fit(train.columns) for each in parts])
    machine = _fitted(features, train.answers, facts["cost"])

    def answer(rows: RawRows) -> list[str]:
        if not len(rows):
            return []
        return _predicted(machine, stacked([each.of(rows.columns) for each in parts]))

    return Rival(answer, most_frequent(train.answers), facts)


def _facts(features: str, cost: float, score: float | None) -> dict[str, Any]:
    return {"features": features, "cost": cost, "score": score}


def _chosen(train: RawRows, dev: RawRows, metric: str, markings: Sequence[str]) -> dict[str, Any]:
    """The best on the dev rows; on a tie, the one with fewer features or the lower cost."""
    if len(train) > CHOSEN_ON:
        rng = np.random.default_rng(len(train))
        train = train.only(drawn(train.answers, CHOSEN_ON, rng))
    seen, asked = {}, {}
    for of in (*PARTS["both"], ALIKE):
        part = Alike(markings) if of == ALIKE else Grams(of, markings)
        seen[of], asked[of] = part.fit(train.columns), part.of(dev.columns)

    def tried(features: str, cost: float) -> dict[str, Any]:
        parts = (*PARTS[features], ALIKE)
        machine = _fitted(stacked([seen[of] for of in parts]), train.answers, cost)
        predicted = _predicted(machine, stacked([asked[of] for of in parts]))
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
