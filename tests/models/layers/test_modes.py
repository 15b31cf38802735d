"""Which tokens of five see which, by hand."""

from __future__ import annotations

import numpy as np

from models import modes
from models.layers.modes import mode_bias, segment_rows
from models.modes import Mode

SEGMENTS = np.array([[0, 0, 0, 1, 1]] * 4, np.int32)
MODES = np.arange(4, dtype=np.int32)
SEEN = {
    Mode.BIDIRECTIONAL: ["11111", "11111", "11111", "11111", "11111"],
    Mode.LEFT_TO_RIGHT: ["10000", "11000", "11100", "11110", "11111"],
    Mode.RIGHT_TO_LEFT: ["11111", "01111", "00111", "00011", "00001"],
    Mode.SEQUENCE_TO_SEQUENCE: ["11100", "11100", "11100", "11110", "11111"],
}


def test_what_is_seen():
    bias = np.asarray(mode_bias(MODES, SEGMENTS))
    assert bias.shape == (4, 1, 5, 5)
    for mode, rows in SEEN.items():
        seen = ["".join(map(str, row)) for row in (bias[mode, 0] == 0).astype(int)]
        assert seen == rows, mode
        ours = ["".join(map(str, row)) for row in modes.seen_in(mode, SEGMENTS[mode]).astype(int)]
        assert ours == rows, mode


def test_segments_of_each_mode():
    assert np.asarray(segment_rows(MODES, SEGMENTS)).tolist() == [
        [0, 0, 0, 1, 1],
        [2, 2, 2, 2, 2],
        [3, 3, 3, 3, 3],
        [4, 4, 4, 5, 5],
    ]
