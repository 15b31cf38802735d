"""Rows that a served model reads a few at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from models.served.rows import AT_ONCE, in_parts


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1, 100])
def test_any_number_of_rows_is_read_a_few_at_a_time(count: int, pairs: bool):
    columns = [[f"{side}{n}" for n in range(count)] for side in "ab"[: 1 + pairs]]
    read = []

    def serve(*texts: Sequence[str]) -> np.ndarray:
        read.append(len(texts[0]))
        return np.array([[int(row[0][1:]), len(row)] for row in zip(*texts, strict=True)])

    found = in_parts(serve, *columns)
    assert [row.tolist() for row in found] == [[n, 1 + pairs] for n in range(count)]
    assert sum(read) == count
    assert max(read, default=0) <= AT_ONCE
