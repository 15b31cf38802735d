"""Relative positions as a bias of attention: a learned number for each head and distance."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError
from models.keras_ops import ops


def distance_buckets(num_buckets: int, max_distance: int) -> np.ndarray:
    """The bucket of each distance in one direction, from 0 to `max_distance`.

    The first half of the buckets are of one distance each; the others grow with its logarithm. The
    last one has all distances from `max_distance` on. Of 8 buckets up to distance 16:

        distance  0 1 2 3 4 5 6 7 8 9 10 11 12 … 16
        bucket    0 1 2 3 4 4 5 5 6 6 6  6  7  … 7

    Args:
        num_buckets: Buckets of the direction, at least 2.
        max_distance: More than half of `num_buckets`.

    Returns:
        (max_distance + 1,) int32.

    Raises:
        RecipeError: An argument is out of range.
    """
    exact = num_buckets // 2
    if exact < 1:
        raise RecipeError(
            f"size.num_buckets: expected at least 2 for each direction, got {num_buckets}"
        )
    if max_distance <= exact:
        raise RecipeError(
            f"size.max_distance: expected more than {exact}, half of the {num_buckets} buckets of"
            f" a direction, got {max_distance}; raise it or lower num_buckets"
        )
    distance = np.arange(max_distance + 1)
    # float32, as in the reference: another rounding would move distances at a border.
    far = np.log(np.maximum(distance, exact).astype(np.float32) / np.float32(exact))
    share = far / np.float32(math.log(max_distance / exact)) * np.float32(num_buckets - exact)
    far = np.minimum(exact + share.astype(np.int32), num_buckets - 1)
    return np.where(distance < exact, distance, far).astype(np.int32)


class RelativeBias(keras.layers.Layer):
    """What each head adds to the score of a token at a distance; float32.

    Args:
        num_heads: H.
        num_buckets: Distances that are told apart (`distance_buckets`); for both directions half of
            them each.
        max_distance: Distance from which on all are alike.
        both_directions: Whether tokens attend to later ones, too. Otherwise those have distance 0.
        stddev: Standard deviation of the initial table.
        name: Name of the layer.

    Shape:
        number of tokens N, positions (B, S + N) of which theirs are the last, or None for 0, 1, 2…
        → (B or 1, H, N, S + N).

    Raises:
        RecipeError: `num_buckets` or `max_distance` is out of range.

    Reference:
        Raffel et al. 2020, arXiv 1910.10683, 2.1; ``transformer_layers.py`` of
        tensorflow/mesh for the buckets.
    """

    def __init__(
        self,
        *,
        num_heads: int,
        num_buckets: int,
        max_distance: int,
        both_directions: bool,
        stddev: float,
        name: str,
    ):
        super().__init__(name=name, dtype="float32", autocast=False)
        self.num_heads, self.num_buckets = num_heads, num_buckets
        self.max_distance = max_distance
        self.stddev = stddev
        half = num_buckets // 2 if both_directions else num_buckets
        back = distance_buckets(half, max_distance)
        # Bucket of the signed distance from -max_distance (before) to max_distance (after).
        after = half + back if both_directions else np.zeros_like(back)
        self._buckets = np.concatenate([back[::-1], after[1:]])

    def build(self, input_shape: Any = None) -> None:
        """Create the variable."""
        initializer: Any = keras.initializers.RandomNormal(stddev=self.stddev)
        self.table = self.add_weight(
            shape=(self.num_buckets, self.num_heads), initializer=initializer, name="table"
        )
        self.built = True

    def call(self, *, length: Any, positions: Any = None) -> Any:
        """The bias of `length` tokens, perhaps behind others."""
        if positions is None:
            positions = ops.arange(length, dtype="int32")[None]
        own = positions[:, ops.shape(positions)[1] - length :]
        distance = positions[:, None] - own[:, :, None]  # (B, N, S + N)
        distance = ops.clip(distance, -self.max_distance, self.max_distance)
        bucket = ops.take(ops.convert_to_tensor(self._buckets), distance + self.max_distance)
        bias = ops.take(ops.convert_to_tensor(self.table), bucket, axis=0)
        return ops.transpose(bias, (0, 3, 1, 2))  # from (B, N, S + N, H)
