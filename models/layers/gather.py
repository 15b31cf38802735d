"""Vectors of a sequence at given positions."""

from __future__ import annotations

from typing import Any

from models.keras_ops import ops


def gather_positions(sequence: Any, positions: Any) -> Any:
    """The vectors at `positions`, as a flat look-up, whose gradient is a cheap scatter.

    Args:
        sequence: (B, T, D).
        positions: (B, M) int32 in [0, T).

    Returns:
        (B, M, D).
    """
    batch, length, width = ops.shape(sequence)
    num_positions = ops.shape(positions)[1]
    first = ops.arange(batch, dtype="int32")[:, None] * length  # (B, 1)
    flat = ops.reshape(sequence, (-1, width))  # (B·T, D)
    rows = ops.take(flat, ops.reshape(positions + first, (-1,)), axis=0)
    return ops.reshape(rows, (batch, num_positions, width))
