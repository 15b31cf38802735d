"""Metrics against scikit-learn, and names that need no TensorFlow."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fourstage.errors import UnknownNameError
from models.evaluation.classification import METRICS, evaluate, left_out


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
    assert evaluate(labels, predicted, 5, list(METRICS)) == pytest.approx(expected)


def test_a_label_that_nobody_has_or_predicts_does_not_count_and_rows_without_label_neither():
    labels, predicted = np.array([0, 1, 1, -1]), np.array([0, 1, 0, 2])
    found = evaluate(labels, predicted, 4, ["macro_f1", "accuracy"])
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert left_out(labels, predicted, 4).tolist() == [2, 3]


def test_no_rows_give_numbers_and_no_warning():
    assert evaluate(np.zeros(0, int), np.zeros(0, int), 3, list(METRICS)) == dict.fromkeys(
        METRICS, 0.0
    )


def test_an_unknown_metric_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'micro_f1'"):
        evaluate(np.zeros(1, int), np.zeros(1, int), 2, ["micro_f2"])


def test_the_names_need_no_tensorflow():
    program = (
        "import sys; from models.evaluation.classification import METRICS;"
        "sys.exit(bool({'tensorflow', 'keras', 'sklearn'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
