"""Slices that networks learn through."""

from __future__ import annotations

from typing import Any

import keras


def part(x: Any, first: Any = 0, size: Any = None, axis: int = 1) -> Any:
    """What stands at some places of an axis that follow one another, as an index gives it.

    TensorFlow computes the gradient of ``x[:, a:b]`` number by number. That of this is zeros around
    the gradient of the part, which takes much less time; the bits are the same.

    Args:
        x: A tensor of a known number of axes.
        first: The first place, a number or a scalar tensor, from 0.
        size: Number of places; None for all that follow.
        axis: From 0.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        begin, sizes = [0] * len(x.shape), [-1] * len(x.shape)
        begin[axis], sizes[axis] = first, -1 if size is None else size
        found = tf.slice(x, begin, sizes)
        # A size that is not known would hide those of the other axes.
        others = list(x.shape)
        others[axis] = found.shape[axis]
        found.set_shape(others)
        return found
    places = slice(first, None if size is None else first + size)
    return x[(slice(None),) * axis + (places,)]
