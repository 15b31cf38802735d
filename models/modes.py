"""Modes of reading: which tokens of a row see which, and how the network's segment table tells.

    bidirectional           every token sees every other
    left_to_right           each token sees itself and those before it
    right_to_left           each token sees itself and those after it
    sequence_to_sequence    the first text sees itself; each token of the second sees the first
                            text, itself and the tokens of the second before it

Reference:
    Dong et al. 2019 (UniLM), arXiv 1905.03197, 2.2 and figure 1.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Mode(IntEnum):
    """How a row is read (`models.features.MODES`)."""

    BIDIRECTIONAL = 0
    LEFT_TO_RIGHT = 1
    RIGHT_TO_LEFT = 2
    SEQUENCE_TO_SEQUENCE = 3


# Row of the segment table for each mode and segment, as in microsoft/unilm. Text that is read in
# one direction is one segment.
SEGMENT_ROWS = ((0, 1), (2, 2), (3, 3), (4, 5))


def seen_in(mode: int, segment_ids: np.ndarray) -> np.ndarray:
    """What each token of a row sees, as the network's `models.layers.modes.mode_bias`.

    Args:
        mode: A `Mode`.
        segment_ids: (T,); 1 for the second text of a sequence-to-sequence row.

    Returns:
        (T, T) bool: whether the token of the row sees that of the column.
    """
    length = len(segment_ids)
    before = np.tri(length, dtype=bool)
    if mode == Mode.LEFT_TO_RIGHT:
        return before
    if mode == Mode.RIGHT_TO_LEFT:
        return before.T
    if mode == Mode.SEQUENCE_TO_SEQUENCE:
        second = np.asarray(segment_ids) > 0
        return ~second[None, :] | (second[:, None] & before)
    return np.ones((length, length), bool)
