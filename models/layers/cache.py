"""Keys and values that are kept while texts are written: one tensor, which is written in place.

A cache is (2 · L, P, H, C, K): keys and values of each layer, for P prompts, at C places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.attention import Past


def stacked(layers: Sequence[Past]) -> Any:
    """One tensor of the keys and values of all layers."""
    return ops.stack([each for layer in layers for each in layer])


def unstacked(cache: Any, layers: int) -> list[Past]:
    """Keys and values by layer; nothing is copied."""
    each = ops.unstack(cache, 2 * layers)
    return list(zip(each[::2], each[1::2], strict=True))


def written(cache: Any, new: Any, at: Any, after: Any) -> Any:
    """A cache with keys and values at free places.

    Args:
        cache: (2 · L, P, H, C, K). TensorFlow writes into its memory: it must not be used again.
        new: (2 · L, P, H, N, K).
        at: First place of the N that are written.
        after: What is computed from the cache before it is written to.
    """
    layers, prompts, heads, places, width = ops.shape(cache)
    if keras.backend.backend() != "tensorflow":
        return ops.slice_update(cache, (0, 0, 0, at, 0), new)
    import tensorflow as tf

    first = ops.arange(layers * prompts * heads, dtype="int32") * places + at
    rows = first[:, None] + ops.arange(ops.shape(new)[3], dtype="int32")
    with tf.control_dependencies([after]):
        # The public scatter copies what it changes, and that is all that was read so far.
        filled = tf.raw_ops.InplaceUpdate(
            x=ops.reshape(cache, (-1, width)),
            i=ops.reshape(rows, (-1,)),
            v=ops.reshape(new, (-1, width)),
        )
    return ops.reshape(filled, ops.shape(cache))


def moved(cache: Any, prompts: Any, places: Any) -> Any:
    """A cache of some prompts of another one, at some of their places.

    Args:
        cache: (2 · L, P, H, C, K).
        prompts: (P',) in [0, P).
        places: (P', C') in [0, C).

    Returns:
        (2 · L, P', H, C', K).
    """
    layers, before, heads, room, width = ops.shape(cache)
    vectors = ops.arange(layers, dtype="int32")[:, None] * before + ops.convert_to_tensor(prompts)
    vectors = vectors[..., None] * heads + ops.arange(heads, dtype="int32")  # (2 · L, P', H)
    rows = vectors[..., None] * room + ops.convert_to_tensor(places)[:, None]
    return ops.take(ops.reshape(cache, (-1, width)), rows, axis=0)
