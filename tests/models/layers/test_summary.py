"""Where a row is summed up, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.layers.row_scorer import NETWORK, SUMMARIES
from models.layers.summary import OF_ALL, row_vectors

SEQUENCE = np.arange(12, dtype=np.float32).reshape(2, 3, 2)  # (B, T, D)
BATCH = {
    "token_ids": np.zeros((2, 3), np.int32),
    "padding_mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32),
}


def test_a_recipe_may_ask_for_each_that_reads_all_tokens():
    assert SUMMARIES == (NETWORK, *OF_ALL)


@pytest.mark.parametrize(
    ("summary", "masked", "whole"),
    [
        ("first", [[0, 1], [6, 7]], [[0, 1], [6, 7]]),
        ("last", [[2, 3], [10, 11]], [[4, 5], [10, 11]]),
        ("mean", [[1, 2], [8, 9]], [[2, 3], [8, 9]]),
        ("max", [[2, 3], [10, 11]], [[4, 5], [10, 11]]),
    ],
)
def test_padding_is_no_part_of_a_row(summary, masked, whole):
    outputs = {"sequence_output": SEQUENCE}
    assert np.asarray(row_vectors(summary, BATCH, outputs)).tolist() == masked
    bare = {"token_ids": BATCH["token_ids"]}
    assert np.asarray(row_vectors(summary, bare, outputs)).tolist() == whole


def test_the_last_real_token_sums_up_a_row_that_is_padded_on_the_left():
    batch = BATCH | {"padding_mask": np.array([[0, 1, 1], [0, 0, 1]], np.int32)}
    outputs = {"sequence_output": SEQUENCE}
    assert np.asarray(row_vectors("last", batch, outputs)).tolist() == [[4, 5], [10, 11]]


def test_where_a_network_was_read_the_summary_stands_first():
    read = {"sequence_output": SEQUENCE[:, 1:]}
    batch = BATCH | {"read_positions": np.array([[1, 2], [1, 2]], np.int32)}
    assert np.asarray(row_vectors("last", batch, read)).tolist() == [[2, 3], [8, 9]]
