"""Weights of classes: the formula against scikit-learn, and a loss that asks for missing ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from fourstage.errors import RecipeError
from models.layers.class_weights import balanced, weights_of


def test_balanced_is_that_of_scikit_learn():
    labels = np.repeat(np.arange(4), [90, 7, 2, 1])
    expected = compute_class_weight("balanced", classes=np.arange(4), y=labels)
    np.testing.assert_allclose(balanced(np.bincount(labels)), expected, rtol=1e-6)


def test_a_class_without_answers_counts_as_if_it_had_one():
    assert balanced(np.array([3, 0])).tolist() == [0.5, 1.5]


def test_of_each_label_the_rows_with_it_weigh_as_those_without_do_together():
    with_and_without = np.array([[90, 10], [99, 1]])
    weights = balanced(with_and_without)
    assert (weights * with_and_without).tolist() == pytest.approx(np.full((2, 2), 50.0))
    assert (weights[:, 1] / weights[:, 0]).tolist() == pytest.approx([9, 99])  # the pos_weight


def test_a_weight_is_found_by_the_number_of_the_class():
    table = np.array([[1, 2], [3, 4]], np.float32)
    assert np.asarray(weights_of(np.array([[3, 0]]), table, "x")).tolist() == [[4, 1]]


def test_without_training_rows_there_is_no_weight_to_take():
    with pytest.raises(RecipeError, match=r"head\.x: 'balanced' needs the training rows, got none"):
        weights_of(np.array([0]), np.zeros(0, np.float32), "head.x")
