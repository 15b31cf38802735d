"""Texts that are read as one row have what they have when each is read in a row of its own."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from models.layers.attention import NOT_SEEN, MultiHeadAttention
from models.layers.side_by_side import joined, joined_pairs, parted

ROWS, TEXTS, HEADS, PLACES, WIDTH = 3, 2, 2, 7, 5
NUMPY: Any = keras.ops.convert_to_numpy
RNG = np.random.default_rng


def normal(*shape: int, seed: int) -> Any:
    drawn = RNG(seed).normal(size=shape).astype("float32")
    return keras.ops.convert_to_tensor(drawn)


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize("heads", [1, HEADS])
def test_texts_attend_to_what_they_share_and_to_themselves_alone(new: int, heads: int):
    keras.utils.set_random_seed(0)
    layer = MultiHeadAttention(hidden_dim=HEADS * WIDTH, num_heads=HEADS)
    layer.build()
    x = normal(ROWS * TEXTS, new, HEADS * WIDTH, seed=1)
    past = tuple(normal(ROWS, HEADS, PLACES, WIDTH, seed=seed) for seed in (2, 3))
    bias = normal(ROWS * TEXTS, heads, new, PLACES + new, seed=4)

    row = joined(x, TEXTS)
    hidden = joined_pairs(bias, new, TEXTS, NOT_SEEN)
    attended = layer.attend(row, *layer.keys_and_values(row), bias=hidden, past=past)

    keys, values = (keras.ops.repeat(each, TEXTS, axis=0) for each in past)
    key, value = layer.keys_and_values(x)
    own = (
        keras.ops.concatenate([keras.ops.transpose(keys, (0, 1, 3, 2)), key], axis=3),
        keras.ops.concatenate([values, value], axis=2),
    )
    expected = layer.attend(x, *own, bias=bias)
    np.testing.assert_allclose(NUMPY(parted(attended, new, TEXTS)), NUMPY(expected), atol=1e-6)


def test_numbers_of_pairs_stand_where_their_tokens_do():
    asking, new = 1, 2
    given = np.arange(ROWS * TEXTS * (PLACES + new)).reshape(ROWS * TEXTS, 1, asking, -1)
    found = NUMPY(joined_pairs(keras.ops.convert_to_tensor(given), new, TEXTS, 1000))
    assert found.shape == (ROWS, 1, TEXTS * asking, PLACES + TEXTS * new)
    for row in range(ROWS):
        for text in range(TEXTS):
            own = given[row * TEXTS + text, 0, 0]
            others = [own[PLACES:] + 1000 * (other != text) for other in range(TEXTS)]
            np.testing.assert_array_equal(
                found[row, 0, text], np.concatenate([own[:PLACES], *others])
            )


@pytest.mark.parametrize("texts", [1, TEXTS])
def test_what_is_joined_is_parted_again(texts: int):
    x = normal(ROWS * TEXTS, 3, 4, seed=5)
    np.testing.assert_array_equal(NUMPY(parted(joined(x, texts), 3, texts)), NUMPY(x))
