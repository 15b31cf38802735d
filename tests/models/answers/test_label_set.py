"""Metrics against scikit-learn, also of resampled rows, and what is no set of labels."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.answers.label_set import LabelSet, set_of, written
from models.evaluation.resampling import resampled_scores, scores

LABEL_SET = LabelSet()
ALL = list(LABEL_SET.metrics)
NAMES = ("billing", "delay", "refund", "价格")


def a_set(rows: int = 200) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(0)
    true = rng.random((rows, len(NAMES))) < [0.5, 0.3, 0.2, 0.1]
    said = np.where(rng.random(true.shape) < 0.8, true, ~true)

    def texts(table: np.ndarray) -> list[str]:
        return [written(n for n, there in zip(NAMES, row, strict=True) if there) for row in table]

    return texts(true), texts(said)


def of_scikit_learn(true: list[str], said: list[str]) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.preprocessing import MultiLabelBinarizer

    sets = [[set_of(answer) for answer in answers] for answers in (true, said)]
    binary = MultiLabelBinarizer().fit(sets[0] + sets[1])
    one, other = (binary.transform(each) for each in sets)
    return {
        "micro_f1": f1_score(one, other, average="micro"),
        "macro_f1": f1_score(one, other, average="macro"),
        "exact_match": accuracy_score(one, other),
    }


def test_metrics_equal_scikit_learn():
    true, said = a_set()
    assert scores(LABEL_SET, true, said, ALL) == pytest.approx(of_scikit_learn(true, said))


def test_a_resample_is_scored_as_its_rows_would_be():
    true, said = a_set(30)
    draws = np.random.default_rng([1, 30, 4])
    picks = [draws.integers(30, size=30) for _ in range(4)]
    expected = [of_scikit_learn([true[i] for i in p], [said[i] for i in p]) for p in picks]
    for metric in ALL:
        (found,) = resampled_scores(LABEL_SET, true, [said], metric, resamples=4, seed=1)
        assert found == pytest.approx([each[metric] for each in expected])


def test_a_label_that_is_only_predicted_counts_and_order_does_not():
    found = scores(LABEL_SET, ['["b", "a"]', "[]"], ['["a", "b"]', '["c"]'], ALL)
    assert found == pytest.approx({"exact_match": 1 / 2, "micro_f1": 4 / 5, "macro_f1": 2 / 3})


def test_two_models_are_scored_by_the_same_columns():
    true, said = a_set(30)
    both = LABEL_SET.statistics(true, [said, ["[]"] * 30])
    assert both[0].shape == both[1].shape
    assert (
        LABEL_SET.metrics["exact_match"](both[1].sum(axis=0))
        == scores(LABEL_SET, true, ["[]"] * 30, ["exact_match"])["exact_match"]
    )


@pytest.mark.parametrize("answers", [[], ["[]", "[]"]])
def test_no_rows_and_no_labels_give_numbers_and_no_warning(answers):
    found = scores(LABEL_SET, answers, answers, ALL)
    assert found == {"micro_f1": 0.0, "macro_f1": 0.0, "exact_match": float(bool(answers))}


def test_names_are_those_of_all_sets_in_the_order_of_labels():
    assert LABEL_SET.names(['["b", "a"]', "", "[]", '["c", "a"]']) == ("a", "b", "c")
    assert LABEL_SET.names(['["10", "9"]']) == ("9", "10")


@pytest.mark.parametrize(
    "answer", ["", "a", "{}", '"a"', "[1]", '["a", null]', "[" * 100_000, None]
)
def test_what_is_no_array_of_names_is_no_set_and_cannot_be_scored(answer):
    assert set_of(answer) is None
    with pytest.raises(ContractViolation, match="each of 2 rows, got something else for row 2"):
        scores(LABEL_SET, ["[]", answer], ["[]", "[]"], ALL)
