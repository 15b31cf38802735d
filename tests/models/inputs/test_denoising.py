"""Noise that changes a text's length: each kind by hand, and what holds for any text."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from models.inputs.denoising import (
    Damaged,
    delete_tokens,
    infill,
    mask_tokens,
    permute_sentences,
    rotate,
    span_lengths,
    whole,
)
from tests.models.scripted_chance import ScriptedChance

MASK = 4
TEXT = whole(np.arange(10, 20, dtype=np.int32))


def test_masked_tokens_by_hand():
    found = mask_tokens(TEXT, 0.25, MASK, ScriptedChance([7, 0, 5, 1, 2, 3, 4, 6, 8, 9]))
    assert found.ids.tolist() == [MASK, 11, 12, 13, 14, MASK, 16, MASK, 18, 19]  # 2.5, rounded up
    assert np.flatnonzero(found.hidden(10)).tolist() == [0, 5, 7]


def test_deleted_tokens_by_hand():
    found = delete_tokens(TEXT, 0.3, ScriptedChance([7, 0, 5, 1, 2, 3, 4, 6, 8, 9]))
    assert found.ids.tolist() == [11, 12, 13, 14, 16, 18, 19]
    assert np.flatnonzero(found.hidden(10)).tolist() == [0, 5, 7]


def test_infilled_spans_by_hand():
    # Three tokens in spans of 2, 0 and, cut from 5, 1. They are the items 1, 4 and 6 of seven that
    # stay and three spans; in their order they have the lengths 1, 2, 0.
    chance = ScriptedChance([2, 0, 5], [6, 1, 4, 0, 2, 3, 5, 7, 8, 9], [2, 0, 1])
    found = infill(TEXT, 0.3, 3.0, MASK, chance)
    assert found.ids.tolist() == [10, MASK, 12, 13, MASK, 16, MASK, 17, 18, 19]
    assert np.flatnonzero(found.hidden(10)).tolist() == [1, 4, 5]


def test_a_span_may_be_at_either_end_and_beside_another():
    text = whole(np.arange(10, 14, dtype=np.int32))
    found = infill(text, 0.5, 3.0, MASK, ScriptedChance([2, 9], [0, 1, 2], [0]))
    assert found.ids.tolist() == [MASK, 12, 13]
    found = infill(text, 0.5, 3.0, MASK, ScriptedChance([1, 1], [3, 2, 0, 1], [0, 1]))
    assert found.ids.tolist() == [10, 11, MASK, MASK]
    found = infill(text, 0.5, 3.0, MASK, ScriptedChance([0, 2], [3, 0, 1, 2], [1, 0]))
    assert found.ids.tolist() == [MASK, 12, 13, MASK]


def test_lengths_of_spans_by_hand():
    assert span_lengths(4, 3.0, ScriptedChance([3, 4, 0, 2])).tolist() == [3, 1]
    # More are drawn where they do not suffice.
    drawn = ScriptedChance([1, 0, 0, 1], [0, 1, 3, 2])
    assert span_lengths(4, 3.0, drawn).tolist() == [1, 1, 1, 1]
    # A text of one hidden token does not grow by the spans of length 0.
    assert span_lengths(1, 3.0, ScriptedChance([0], [0], [2])).tolist() == [1]


def test_permuted_sentences_by_hand():
    # 10 11 12 | 13 | 14 15 16 17 | 18 19
    found = permute_sentences(TEXT, [0, 3, 4, 8], 1.0, ScriptedChance([2, 0, 3, 1]))
    assert found.ids.tolist() == [14, 15, 16, 17, 10, 11, 12, 18, 19, 13]
    assert not found.hidden(10).any()
    # Half of them: the last goes to the second one's place, and back.
    found = permute_sentences(TEXT, [0, 3, 4, 8], 0.5, ScriptedChance([3, 1, 0, 2]))
    assert found.ids.tolist() == [10, 11, 12, 18, 19, 14, 15, 16, 17, 13]


def test_a_rotated_text_by_hand():
    found = rotate(TEXT, ScriptedChance(3))
    assert found.ids.tolist() == [13, 14, 15, 16, 17, 18, 19, 10, 11, 12]
    assert found.places.tolist() == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]


def test_noise_on_noise_knows_what_is_hidden():
    rng = np.random.default_rng(0)
    for length in (0, 1, 2, 3, 9, 60):
        text = whole(np.arange(10, 10 + length, dtype=np.int32))
        noisy = permute_sentences(text, [0, 2, 7], 1.0, rng)
        noisy = mask_tokens(delete_tokens(noisy, 0.2, rng), 0.2, MASK, rng)
        noisy = rotate(infill(noisy, 0.3, 3.0, MASK, rng), rng)
        assert len(noisy.ids) == len(noisy.places) <= length
        seen = noisy.ids[noisy.ids != MASK]
        assert sorted(seen - 10) == np.flatnonzero(~noisy.hidden(length)).tolist()
        np.testing.assert_array_equal(
            noisy.ids[noisy.places >= 0] - 10, noisy.places[noisy.places >= 0]
        )


def test_exactly_the_share_of_tokens_is_hidden_and_no_text_grows():
    rng = np.random.default_rng(1)
    for length in range(1, 200):
        text = whole(np.arange(10, 10 + length, dtype=np.int32))
        found = infill(text, 0.3, 3.0, MASK, rng)
        assert found.hidden(length).sum() == int(np.ceil(round(0.3 * length, 6)))
        assert len(found) <= length


def test_lengths_of_spans_are_a_poisson_distribution():
    rng = np.random.default_rng(2)
    lengths = np.concatenate([span_lengths(400, 3.0, rng)[:-1] for _ in range(300)])
    shares = np.bincount(lengths, minlength=12)[:7] / len(lengths)
    expected = np.exp(-3.0) * np.array([1, 3, 9 / 2, 27 / 6, 81 / 24, 243 / 120, 729 / 720])
    np.testing.assert_allclose(shares, expected, atol=0.01)


@pytest.mark.parametrize("place", range(4))
def test_every_place_of_a_span_is_as_likely(place):
    rng = np.random.default_rng(3)
    text = whole(np.arange(5, dtype=np.int32))
    found = Counter(
        tuple(np.flatnonzero(infill(text, 0.4, 30.0, MASK, rng).hidden(5))) for _ in range(4000)
    )
    assert set(found) == {(i, i + 1) for i in range(4)}  # a mean of 30: one span of two tokens
    assert found[(place, place + 1)] / 4000 == pytest.approx(0.25, abs=0.03)


def test_nothing_is_nothing():
    empty = whole(np.zeros(0, np.int32))
    rng = np.random.default_rng(0)
    for found in (
        mask_tokens(empty, 1.0, MASK, rng),
        delete_tokens(empty, 0.5, rng),
        infill(empty, 1.0, 3.0, MASK, rng),
        permute_sentences(empty, [], 1.0, rng),
        rotate(empty, rng),
    ):
        assert isinstance(found, Damaged)
        assert len(found) == 0
