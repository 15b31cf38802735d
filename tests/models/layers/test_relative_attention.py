"""Scores by distance: the table and the shift, against one look-up a pair of positions."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from models.families.xlnet import SIZES, XLNet
from models.layers.relative_attention import (
    HeadBiases,
    distance_table,
    found_at,
    relative_shift,
    shifted_at,
    sinusoids,
)

ops = keras.ops


def test_sinusoids_are_all_sines_then_all_cosines():
    found = ops.convert_to_numpy(sinusoids(np.array([0, 3, -3]), 4))
    rates = np.array([1.0, 0.01])
    expected = [[*np.sin(d * rates), *np.cos(d * rates)] for d in (0, 3, -3)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("least", [0, -3])
def test_a_table_goes_down_from_the_farthest_key_and_may_be_clamped(least):
    table = ops.convert_to_numpy(distance_table(6, least, 8))
    assert table.shape == (7 - least, 8)
    np.testing.assert_allclose(table, sinusoids(np.arange(6, least - 1, -1), 8), atol=1e-6)
    clamped = ops.convert_to_numpy(distance_table(6, least, 8, clamp=2))
    distances = np.clip(np.arange(6, least - 1, -1), -2, 2)
    np.testing.assert_allclose(clamped, sinusoids(distances, 8), atol=1e-6)


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (3, 8), (1, 5)])
def test_the_shift_finds_the_score_of_each_pairs_distance(queries, keys):
    columns = keys + queries  # distances keys, keys - 1, …, 1 - queries
    scores = np.random.default_rng(0).normal(size=(2, 3, queries, columns))
    expected = np.zeros((2, 3, queries, keys))
    for i in range(queries):
        for j in range(keys):
            distance = keys - queries + i - j
            expected[:, :, i, j] = scores[:, :, i, keys - distance]
    np.testing.assert_array_equal(relative_shift(scores, keys), expected)
    one_way = relative_shift(scores[..., : keys + 1], keys)  # distances down to 0
    for i in range(queries):
        seen = keys - queries + i + 1
        np.testing.assert_array_equal(one_way[:, :, i, :seen], expected[:, :, i, :seen])
    at = np.random.default_rng(1).integers(0, queries, (2, 5)).astype(np.int32)
    some = np.take_along_axis(scores, at[:, None, :, None], axis=2)
    found = shifted_at(some, at, queries, keys)
    np.testing.assert_array_equal(found, np.take_along_axis(expected, at[:, None, :, None], 2))


def test_keys_that_stand_anywhere_get_the_score_of_their_distance():
    scores = np.random.default_rng(0).normal(size=(2, 3, 2, 6))  # of distances 5, 4, …, 0
    places = np.array([[3, 1, 0, 2, 4], [2, 0, 1, 4, 3]], np.int32)  # of five keys
    distances = np.array([[3], [4]], np.int32) - places[:, None]  # of queries in places 3 and 4
    found = ops.convert_to_numpy(found_at(scores, distances))
    in_order = ops.convert_to_numpy(relative_shift(scores, 5))
    for row, query in np.ndindex(2, 2):
        seen = distances[row, query] >= 0
        expected = in_order[row, :, query, places[row][seen]]
        np.testing.assert_array_equal(found[row, :, query, seen], expected)


def test_what_is_added_in_float32_is_not_rounded_within_a_layer_of_bfloat16():
    biases, network = HeadBiases(2, 4), XLNet(vocabulary_size=30, **SIZES["tiny"])
    biases.build()
    at = np.zeros((1, 1), np.int32)

    class Around(keras.layers.Layer):
        def call(self, at):
            return *biases.values, network._unknown(at)

    found = Around(dtype="mixed_bfloat16")(at)
    for ours, given in zip(found, (*biases.values, network._unknown(at)), strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(ours), ops.convert_to_numpy(given))
