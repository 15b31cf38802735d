"""Calibration against scikit-learn's curve and against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from models.evaluation.calibration import NUM_BINS, calibration


def test_the_curve_is_that_of_scikit_learn():
    draw = np.random.default_rng(0)
    probability = draw.beta(4, 2, 500)
    right = draw.random(500) < probability**2
    found = calibration(probability, right)
    accuracy, confidence = calibration_curve(right, probability, n_bins=NUM_BINS)
    np.testing.assert_allclose(found.accuracy, accuracy, rtol=1e-12)
    np.testing.assert_allclose(found.confidence, confidence, rtol=1e-12)
    assert found.rows.sum() == 500
    assert found.overconfidence == pytest.approx(probability.mean() - right.mean())


def test_the_error_is_the_mean_distance_weighed_by_rows():
    # Three rows of .9 of which one is right, one of .2 that is wrong, both ends of the scale.
    found = calibration(
        np.array([0.9, 0.9, 0.9, 0.2, 1.0, 0.0]), np.array([1, 0, 0, 0, 1, 0], bool)
    )
    assert list(found.rows) == [1, 1, 3, 1]
    assert found.error == pytest.approx((3 * (0.9 - 1 / 3) + 0.2 + 0 + 0) / 6)


def test_answers_that_are_right_as_often_as_they_say_have_no_error():
    assert calibration(np.full(4, 0.75), np.array([1, 1, 1, 0])).error == 0
