"""Relative positions: buckets by hand, and what each head adds for them."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import RecipeError
from models.layers.relative_bias import RelativeBias, distance_buckets
from tests.conformance.parts import network


def test_buckets_of_t5_by_hand():
    both = distance_buckets(16, 128)  # of one direction in the encoder
    assert both[:9].tolist() == [*range(8), 8]
    assert {d: int(both[d]) for d in (11, 12, 15, 16, 22, 23, 31, 32, 64, 90, 91, 128)} == {
        **{11: 8, 12: 9, 15: 9, 16: 10, 22: 10, 23: 11, 31: 11},
        **{32: 12, 64: 14, 90: 14, 91: 15, 128: 15},
    }
    past = distance_buckets(32, 128)  # in the decoder
    assert past[:17].tolist() == [*range(16), 16]
    assert {d: int(past[d]) for d in (18, 19, 113, 128)} == {18: 16, 19: 17, 113: 31, 128: 31}
    assert (np.diff(past) >= 0).all()


@pytest.mark.parametrize(
    ("both_directions", "buckets", "distance", "said"),
    [
        (False, 32, 16, "max_distance: expected more than 16, half of the 32 buckets.* got 16"),
        (True, 32, 8, "max_distance: expected more than 8, half of the 16 buckets.* got 8"),
        (True, 2, 8, "num_buckets: expected at least 2 for each direction, got 1"),
    ],
)
def test_distances_that_have_no_bucket_are_refused(both_directions, buckets, distance, said):
    def bias(distance: int, buckets: int) -> RelativeBias:
        return RelativeBias(
            num_heads=2,
            num_buckets=buckets,
            max_distance=distance,
            both_directions=both_directions,
            stddev=1.0,
            name="relative_bias",
        )

    with pytest.raises(RecipeError, match=said):
        bias(distance, buckets)
    assert bias(distance + 2, buckets + 2)


@pytest.mark.parametrize("both_directions", [True, False])
def test_a_score_gets_the_number_of_its_distance(both_directions):
    layer = RelativeBias(
        num_heads=2,
        num_buckets=8,
        max_distance=6,
        both_directions=both_directions,
        stddev=1.0,
        name="relative_bias",
    )
    layer.build()
    layer.table.assign(np.arange(16).reshape(8, 2))
    found = np.asarray(layer(length=4))
    assert found.shape == (1, 2, 4, 4)
    # Head 0 has twice the number of the bucket, head 1 one more.
    np.testing.assert_array_equal(found[0, 1], found[0, 0] + 1)
    buckets = found[0, 0] / 2
    if both_directions:  # before: 0, 1, 2 …; after: 5, 6 …
        assert buckets.tolist() == [[0, 5, 6, 6], [1, 0, 5, 6], [2, 1, 0, 5], [2, 2, 1, 0]]
    else:  # what comes later is as what stands here; it is hidden anyway
        assert buckets.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 1, 0]]
    rest = np.asarray(layer(length=1, positions=np.arange(4)[None]))
    np.testing.assert_array_equal(rest, found[:, :, 3:])
    turned = np.asarray(layer(length=1, positions=np.array([[2, 0, 1, 3]])))
    np.testing.assert_array_equal(turned, found[:, :, 3:, [2, 0, 1, 3]])


def test_t5_has_one_table_a_side_and_none_between_them():
    made = network("t5")
    tables = [v.path for v in made.trainable_variables if v.path.endswith("/table")]
    assert tables == ["t5/relative_bias/table", "t5/decoder_relative_bias/table"]
    assert not any(v.path.endswith(("bias", "beta")) for v in made.trainable_variables)
    assert made.memory_bias({"token_ids": np.zeros((1, 3), "int32")}) is None
