"""Scores of an evaluation: those that are defined, and which labels a mean over them leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from models.answers.choice import Choice
from models.answers.label import Label
from models.answers.label_set import LabelSet
from models.answers.spans import Spans
from models.answers.text import Text, written
from tasks.steps.evaluate_model import defined_scores, labels_left_out


def test_of_no_rows_there_are_no_scores_as_none_of_them_is_wrong():
    none = np.zeros(0, object)
    assert defined_scores(Label(), none, none, ["accuracy", "macro_f1"]) == {}
    true = np.array(["a", "b"], object)
    assert defined_scores(Label(), true, true[::-1], ["accuracy"]) == {"accuracy": 0.0}


def test_a_metric_that_answers_say_nothing_of_is_left_out():
    true, said = (np.array([written(text)], object) for text in ("a cat", "a cat"))
    found = defined_scores(Text(), true, said, ["perplexity", "exact_match"])
    assert found == {"exact_match": 1.0}


@pytest.mark.parametrize(
    ("kind", "learned", "true", "said", "left"),
    [
        (Label, ["a", "b", "c", ""], ["a"], ["b"], ["c"]),
        (LabelSet, ['["a", "b"]', '["c"]', "[]"], ['["a"]', "[]"], ["[]", '["b"]'], ["c"]),
        (Spans, ['[[0, 1, "x"], [2, 3, "y"]]'], ["[]"], ['[[0, 2, "y"]]'], ["x"]),
        (Choice, ["0", "1"], ["0"], ["0"], []),
    ],
)
def test_labels_that_no_row_and_no_answer_has_are_named(kind, learned, true, said, left):
    columns = (np.array(column, object) for column in (true, said))
    assert labels_left_out(kind(), learned, *columns) == left
