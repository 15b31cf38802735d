"""Metrics against scikit-learn, and names that need no TensorFlow."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fourstage.errors import UnknownNameError
from models.answers.label import Label
from models.evaluation.resampling import scores

LABEL = Label()


def test_metrics_equal_scikit_learn():
    from sklearn import metrics

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 400)
    predicted = np.where(rng.random(400) < 0.6, labels, rng.integers(0, 5, 400))
    expected = {
        "accuracy": metrics.accuracy_score(labels, predicted),
        "micro_f1": metrics.f1_score(labels, predicted, average="micro"),
        "macro_f1": metrics.f1_score(labels, predicted, average="macro"),
        "weighted_f1": metrics.f1_score(labels, predicted, average="weighted"),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, predicted),
        "matthews": metrics.matthews_corrcoef(labels, predicted),
    }
    assert scores(LABEL, labels, predicted, list(LABEL.metrics)) == pytest.approx(expected)


def test_names_score_as_numbers_do_and_one_that_is_only_predicted_counts():
    labels, predicted = ["yes", "no", "no"], ["yes", "no", "perhaps"]
    found = scores(LABEL, labels, predicted, ["macro_f1", "accuracy"])
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert found == scores(LABEL, [2, 0, 0], [2, 0, 1], ["macro_f1", "accuracy"])


def test_an_answer_that_is_no_label_is_wrong_and_no_class_of_macro_f1():
    from sklearn import metrics

    rng = np.random.default_rng(1)
    labels = rng.choice(["no", "yes"], 200)
    predicted = np.where(rng.random(200) < 0.3, "", np.where(rng.random(200) < 0.8, labels, "no"))
    shared = {"labels": ["no", "yes"], "zero_division": 0}
    expected = {
        "accuracy": metrics.accuracy_score(labels, predicted),
        "micro_f1": metrics.f1_score(labels, predicted, average="micro", **shared),
        "macro_f1": metrics.f1_score(labels, predicted, average="macro", **shared),
        "weighted_f1": metrics.f1_score(labels, predicted, average="weighted", **shared),
        "matthews": metrics.matthews_corrcoef(labels, predicted),
    }
    assert scores(LABEL, labels, predicted, list(expected)) == pytest.approx(expected)
    nothing = scores(LABEL, ["no", "yes"], ["", ""], list(LABEL.metrics))
    assert nothing == dict.fromkeys(LABEL.metrics, 0.0)


def test_no_rows_give_numbers_and_no_warning():
    assert scores(LABEL, [], [], list(LABEL.metrics)) == dict.fromkeys(LABEL.metrics, 0.0)


def test_an_unknown_metric_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'micro_f1'"):
        scores(LABEL, ["a"], ["a"], ["micro_f2"])


def test_the_names_need_no_tensorflow():
    program = (
        "import sys; from models.answers.label import Label;"
        "sys.exit(bool({'tensorflow', 'keras', 'sklearn'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
