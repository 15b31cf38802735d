"""Functions compiled as one have the same values and gradients as operation by operation."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from models.layers.activation import ACTIVATIONS
from models.layers.projection import ActivatedProjection

X = np.random.default_rng(0).normal(0, 2, (3, 5, 16)).astype(np.float32)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("inside", ["eager", "graph"])
def test_training_and_prediction_agree_in_values_and_gradients(activation, inside):
    layer = ActivatedProjection(8, activation=activation, name="dense", dtype="float32")
    layer.build((None, None, 16))
    layer.bias.assign(np.linspace(-1, 1, 8))

    def run(x, training):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = layer(x, training=training)
            loss = tf.reduce_sum(result**2)
        return result, *tape.gradient(loss, [x, layer.kernel.value, layer.bias.value])

    compiled = tf.function(run) if inside == "graph" else run
    fast, plain = compiled(tf.constant(X), True), compiled(tf.constant(X), False)
    for one, two in zip(fast, plain, strict=True):
        assert np.abs(one.numpy() - two.numpy()).max() < 1e-5 * max(1, np.abs(two.numpy()).max())


def test_a_graph_with_an_unknown_length_runs_every_length():
    layer = ActivatedProjection(8, activation="gelu_tanh", name="dense", dtype="float32")
    layer.build((None, None, 16))
    run = tf.function(
        lambda x: layer(x, training=True), input_signature=[tf.TensorSpec((3, None, 16))]
    )
    for length in (2, 5):
        expected = layer(X[:, :length], training=False)
        assert np.abs(run(X[:, :length]) - expected).max() < 1e-5


def test_bfloat16_goes_in_and_out_with_float32_between():
    layer = ActivatedProjection(8, activation="gelu_tanh", name="dense", dtype="mixed_bfloat16")
    layer.build((None, None, 16))
    result = layer(X, training=True)
    assert result.dtype == tf.bfloat16
    assert layer.kernel.dtype == "float32"
