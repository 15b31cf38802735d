"""Keys and values are written and moved to where NumPy would put them."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models.layers.cache import moved, stacked, unstacked, written

LAYERS, PROMPTS, HEADS, PLACES, WIDTH = 4, 3, 2, 7, 5


@pytest.fixture
def cache() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(LAYERS, PROMPTS, HEADS, PLACES, WIDTH)).astype("float32")


def test_what_is_written_stands_at_its_places_and_the_rest_stays(cache):
    texts, at = 2, 4
    rng = np.random.default_rng(1)
    new = rng.normal(size=(LAYERS, PROMPTS, HEADS, texts, WIDTH)).astype("float32")
    expected = cache.copy()
    expected[:, :, :, at : at + texts] = new
    given = keras.ops.convert_to_tensor(cache.copy())
    found = written(given, keras.ops.convert_to_tensor(new), at, after=given)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(found), expected)


def test_what_is_moved_are_the_places_of_each_prompt(cache):
    prompts, places = np.array([2, 0], "int32"), np.array([[6, 1, 1], [0, 2, 5]], "int32")
    expected = np.stack([cache[:, 2][:, :, places[0]], cache[:, 0][:, :, places[1]]], axis=1)
    found = moved(keras.ops.convert_to_tensor(cache), prompts, places)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(found), expected)


def test_layers_are_stacked_and_unstacked(cache):
    layers = unstacked(keras.ops.convert_to_tensor(cache), LAYERS // 2)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(layers[1][0]), cache[2])
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(stacked(layers)), cache)
