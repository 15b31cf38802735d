"""Accuracy of choices, and what is no number of a choice."""

from __future__ import annotations

import pytest

from fourstage.errors import ContractViolation
from models.answers.choice import Choice, choice_of
from models.evaluation.resampling import scores

CHOICE = Choice()


def test_accuracy_is_the_share_of_right_choices():
    assert scores(CHOICE, ["0", "3", "1"], ["0", "1", "1"], ["accuracy"]) == {
        "accuracy": pytest.approx(2 / 3)
    }
    assert scores(CHOICE, [], [], ["accuracy"]) == {"accuracy": 0.0}


def test_two_models_are_scored_on_the_same_rows():
    one, other = CHOICE.statistics(["0", "1"], [["0", "1"], ["1", "1"]])
    assert one.toarray().tolist() == [[1, 1], [1, 1]]
    assert other.toarray().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("answer", ["", "-1", "01", "1.0", "²", "b", "9" * 99, None])
def test_what_is_no_number_of_a_choice_cannot_be_scored(answer):
    assert choice_of(answer) is None
    with pytest.raises(ContractViolation, match="each of 2 rows, got something else for row 2"):
        scores(CHOICE, ["0", answer], ["0", "0"], ["accuracy"])
