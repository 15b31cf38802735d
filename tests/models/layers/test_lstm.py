"""An LSTM's gradient by hand against the one that TensorFlow derives from a loop of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from models.layers.lstm import Lstm, read_lstm
from models.layers.recurrent import read_along

ROWS, LENGTH, CELLS = 3, 7, 5
RNG = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return tf.constant(RNG.normal(size=shape), tf.float32)


MASKS = {
    "every token": None,
    "padding": np.array([[1] * 7, [1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 1, 1]]),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("clips", [(None, None), (0.6, 0.2)])
def test_values_and_gradients_are_those_of_a_loop_of_steps(backwards, mask, projected, clips):
    width = 4 if projected else CELLS
    given, recurrent = draw(ROWS, LENGTH, 4 * CELLS), draw(width, 4 * CELLS)
    projection = draw(CELLS, width) if projected else None
    weigh = draw(ROWS, LENGTH, width), draw(ROWS, width), draw(ROWS, CELLS)
    asked = [each for each in (given, recurrent, projection) if each is not None]

    lstm = Lstm(recurrent, projection, *clips)

    def by_hand() -> tuple[Any, list[Any]]:
        return read_lstm(lstm, given, mask, backwards=backwards)

    def derived() -> tuple[Any, list[Any]]:
        begin = [tf.zeros((ROWS, width)), tf.zeros((ROWS, CELLS))]
        each, last = read_along(lstm.step, begin, given, mask, backwards=backwards)
        return each[0], last

    found = []
    for read in (by_hand, tf.function(by_hand), derived):
        with tf.GradientTape() as tape:
            tape.watch(asked)
            each, last = read()
            loss = sum(tf.reduce_sum(w * x) for w, x in zip(weigh, (each, *last), strict=True))
        found.append([each, *last, *tape.gradient(loss, asked)])
    *hand, wanted = found
    for some in hand:
        for ours, theirs in zip(some, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    for limit, values in zip(clips, (wanted[2], wanted[0]), strict=True):
        if limit is not None:
            assert 0 < np.mean(abs(values.numpy()) == np.float32(limit)) < 1, "some are clipped"
