"""A part is what an index gives, and so is its gradient."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from models.layers.slices import part

X = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")


@pytest.mark.parametrize(
    ("first", "size", "axis", "index"),
    [
        (0, 2, 1, np.s_[:, :2]),
        (1, None, 1, np.s_[:, 1:]),
        (1, 3, 2, np.s_[:, :, 1:4]),
        (2, 0, 0, np.s_[2:2]),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_part_and_its_gradient_are_those_of_an_index(
    first: int, size: int | None, axis: int, index: Any, known: bool
):
    def asked(number: int | None) -> Any:
        return number if known or number is None else tf.constant(number)

    @tf.function(input_signature=[tf.TensorSpec((None, None, 4))])
    def both(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = part(x, asked(first), asked(size), axis)
            if axis != 2:
                assert found.shape[2] == 4, "layers behind it need the width"
            score = keras.ops.sum(keras.ops.sin(found))
        return found, tape.gradient(score, x)

    found, gradient = both(X)
    np.testing.assert_array_equal(found, X[index])
    expected = np.zeros_like(X)
    expected[index] = np.cos(X[index])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)
