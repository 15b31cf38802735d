"""Keys and values are written and moved to where NumPy would put them."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models.layers.attention import MultiHeadAttention
from models.layers.cache import moved, stacked, unstacked, written

LAYERS, PROMPTS, HEADS, PLACES, WIDTH = 4, 3, 2, 7, 5


@pytest.fixture
def cache() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(LAYERS, PROMPTS, HEADS, PLACES, WIDTH)).astype("float32")


def test_what_is_written_stands_at_its_places_and_the_rest_stays(cache):
    texts, at = 2, 4
    rng = np.random.default_rng(1)
    new = rng.normal(size=(LAYERS, PROMPTS * texts, HEADS, 1, WIDTH)).astype("float32")
    expected = cache.copy()
    for prompt in range(PROMPTS):
        for text in range(texts):
            expected[:, prompt, :, at + text] = new[:, prompt * texts + text, :, 0]
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


@pytest.mark.parametrize("length", [1, 3])
def test_rows_that_share_keys_and_values_attend_as_if_each_had_its_own(length):
    keras.utils.set_random_seed(0)
    layer = MultiHeadAttention(hidden_dim=HEADS * WIDTH, num_heads=HEADS)
    layer.build()
    rng = np.random.default_rng(2)
    x = keras.ops.convert_to_tensor(rng.normal(size=(6, length, HEADS * WIDTH)).astype("float32"))
    past = [rng.normal(size=(3, HEADS, PLACES, WIDTH)).astype("float32") for _ in range(2)]
    bias = rng.normal(size=(6, 1, length, PLACES + length)).astype("float32")
    key, value = layer.keys_and_values(x)
    found = layer.attend(x, key, value, bias=bias, past=tuple(past))
    keys, values = (keras.ops.convert_to_tensor(np.repeat(each, 2, axis=0)) for each in past)
    joined = (
        keras.ops.concatenate([keras.ops.transpose(keys, (0, 1, 3, 2)), key], axis=3),
        keras.ops.concatenate([values, value], axis=2),
    )
    expected = layer.attend(x, *joined, bias=bias)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(expected), atol=1e-6
    )
