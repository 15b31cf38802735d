"""Scores of an evaluation: those that are defined."""

from __future__ import annotations

import numpy as np

from models.answers.label import Label
from models.answers.text import Text, written
from tasks.steps.evaluate_model import defined_scores


def test_of_no_rows_there_are_no_scores_as_none_of_them_is_wrong():
    none = np.zeros(0, object)
    assert defined_scores(Label(), none, none, ["accuracy", "macro_f1"]) == {}
    true = np.array(["a", "b"], object)
    assert defined_scores(Label(), true, true[::-1], ["accuracy"]) == {"accuracy": 0.0}


def test_a_metric_that_answers_say_nothing_of_is_left_out():
    true, said = (np.array([written(text)], object) for text in ("a cat", "a cat"))
    found = defined_scores(Text(), true, said, ["perplexity", "exact_match"])
    assert found == {"exact_match": 1.0}
