"""Attention masks of the modes of reading (`models.modes`), made in the graph."""

from __future__ import annotations

from typing import Any

from models.keras_ops import ops
from models.layers.attention import NOT_SEEN
from models.modes import SEGMENT_ROWS, Mode


def mode_bias(modes: Any, segment_ids: Any) -> Any:
    """Additive attention bias that hides what a token does not see in its row's mode.

    Args:
        modes: (B,) int32, a `Mode` each.
        segment_ids: (B, T) int32; 1 for the second text of a sequence-to-sequence row.

    Returns:
        (B, 1, T, T) float32, 0 or `NOT_SEEN`; padding is not hidden.
    """
    place = ops.arange(ops.shape(segment_ids)[1], dtype="int32")
    before = (place[None, :] <= place[:, None])[None]  # (1, T, T): column j is not after row i
    behind = (place[None, :] >= place[:, None])[None]
    second = segment_ids > 0
    first = ops.logical_not(second)[:, None, :]  # (B, 1, T)
    modes = modes[:, None, None]
    seen = ops.logical_or(
        modes == Mode.BIDIRECTIONAL,
        ops.logical_or(
            ops.logical_or(
                ops.logical_and(modes == Mode.LEFT_TO_RIGHT, before),
                ops.logical_and(modes == Mode.RIGHT_TO_LEFT, behind),
            ),
            ops.logical_and(
                modes == Mode.SEQUENCE_TO_SEQUENCE,
                ops.logical_or(first, ops.logical_and(second[:, :, None], before)),
            ),
        ),
    )
    return ((1.0 - ops.cast(seen, "float32")) * NOT_SEEN)[:, None]


def segment_rows(modes: Any, segment_ids: Any) -> Any:
    """Row of the segment table of each token, (B, T) int32."""
    rows = ops.convert_to_tensor(SEGMENT_ROWS, "int32")  # (modes, 2)
    return ops.take_along_axis(ops.take(rows, modes, axis=0), segment_ids, axis=1)
