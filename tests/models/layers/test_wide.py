"""The wide layer: its logits by hand, and no variable of it is trained."""

from __future__ import annotations

import numpy as np
import pytest

from models.inputs.hashed_ngrams import BUCKETS, SECOND
from models.layers.wide import WidePart, compared
from models.linear_machine import Machine

HALF = BUCKETS // 2
USED = [3, 70, HALF + 5]  # two buckets of pieces, one of characters


def layer() -> WidePart:
    idf, kernel = np.zeros(BUCKETS, np.float32), np.zeros((BUCKETS, 2), np.float32)
    idf[USED] = [1.5, 2.0, 3.0]
    kernel[USED] = [[1, -1], [0, 2], [0.5, 0]]
    made = WidePart(2)
    made.build()
    bias, unseen = np.array([0.25, 0], np.float32), np.zeros((0, 2), np.float32)
    made.learn(Machine(idf, kernel, bias, unseen), blend=(2.0, 0.5))
    return made


def test_logits_are_of_weighted_counts_with_each_kind_at_length_1():
    batch = {
        # The last row has one bucket that nobody has seen; unused slots are bucket 0.
        "ngram_ids": np.array([[3, 70, HALF + 5], [70, 0, 0], [9, 0, 0]], np.int32),
        "ngram_counts": np.array([[2, 1, 7], [4, 0, 0], [1, 0, 0]], np.int32),
    }
    pieces = np.array([(1 + np.log(2)) * 1.5, 2.0])
    first, second = pieces / np.linalg.norm(pieces)
    expected = [[0.25 + first + 0.5, -first + 2 * second], [0.25, 2], [0.25, 0]]
    assert np.asarray(layer()(batch)) == pytest.approx(np.array(expected), abs=1e-6)


def test_of_pairs_both_texts_have_buckets_of_their_own_and_likeness_is_added():
    one = layer()
    one.alike.assign(np.random.default_rng(0).normal(size=one.alike.shape))
    ids = np.array([[3, 70, HALF + 5], [70 ^ SECOND, 9, 0]], np.int32)
    counts = np.array([[[2, 0], [1, 1], [0, 7]], [[0, 2], [1, 0], [0, 0]]], np.int32)
    batch = {"ngram_ids": ids, "ngram_counts": counts}
    alone = {
        "ngram_ids": np.concatenate([ids, ids ^ SECOND], axis=1),
        "ngram_counts": np.concatenate([counts[..., 0], counts[..., 1]], axis=1),
    }
    alike = np.asarray(compared(batch, one.idf)) @ np.asarray(one.alike)
    expected = np.asarray(one(alone)) + alike
    assert np.asarray(one(batch)) == pytest.approx(expected, abs=1e-5)
    assert np.abs(alike).max() > 0.1
    # The second text of the second row has bucket 70 as its own.
    without = one({key: value[1:] for key, value in batch.items()})
    assert np.asarray(without)[0] == pytest.approx(np.array([0.25, 2]) + alike[1], abs=1e-5)
    # Rows of choices: one more dimension in front.
    deeper = one({key: value[None] for key, value in batch.items()})
    assert np.asarray(deeper)[0] == pytest.approx(expected, abs=1e-6)


def test_logits_of_training_rows_are_taken_as_they_come():
    given = np.array([[1.5, -2]], np.float32)
    assert np.array_equal(layer()({"ngram_logits": given}), given)


def test_a_blend_weighs_both_scores():
    scores, counted = np.array([[1, -3], [4, 2]], np.float32)[:, None]
    assert np.array_equal(layer().beside(scores, counted), [[4, -5]])


def test_it_is_fixed():
    assert not layer().trainable_variables
    assert len(layer().weights) == 5
