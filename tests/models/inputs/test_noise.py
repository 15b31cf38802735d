"""Noise: where it falls, what is seen, what is predicted."""

from __future__ import annotations

import numpy as np

from models.inputs import noise
from tests.models.scripted_chance import ScriptedChance


def test_slots_are_the_share_rounded_up():
    # 0.15 · 20 is 3.0000000000000004 in floating point, and still three.
    assert [noise.num_slots(0.15, length) for length in (1, 12, 20, 64, 128)] == [1, 2, 3, 10, 20]


def test_the_budget_is_the_rounded_share_of_the_candidates_and_one_at_least():
    may_choose = np.arange(20)[None] < np.array([[0], [1], [9], [10], [20]])
    assert noise.budget(may_choose, 0.15, 3).tolist() == [0, 1, 1, 2, 3]
    assert noise.budget(may_choose, 0.15, 3, up=True).tolist() == [0, 1, 2, 2, 3]


def test_a_unit_begins_at_a_start_and_behind_what_may_not_be_chosen():
    may_choose = np.array([[0, 1, 1, 1, 0, 1, 1, 0]], bool)
    starts = np.array([[0, 0, 1, 0, 1, 0, 0, 1]], bool)
    assert noise.units(may_choose, starts).tolist() == [[-1, 0, 1, 1, -1, 2, 2, -1]]


def test_a_row_whose_units_are_all_too_long_gets_none():
    may_choose = np.ones((1, 6), bool)
    starts = np.array([[1, 0, 0, 1, 0, 0]], bool)
    chosen = noise.choose_units(may_choose, starts, np.array([2]), np.random.default_rng(0))
    assert not chosen.any()


def test_padding_and_special_tokens_are_no_candidates():
    ids, mask = np.array([[2, 7, 8, 3, 9, 0]]), np.array([[1, 1, 1, 1, 0, 0]])
    assert noise.candidates(ids, mask, (2, 3)).tolist() == [[0, 1, 1, 0, 0, 0]]


def test_spaced_spans_by_hand():
    """As in the docstring: two tokens, five of their twelve tokens of context before them."""
    sizes = [[0.5, *[0.0] * 17]]  # p(1) = .438, p(2) = .219: two tokens, then one
    before = [[5 / 12 + 1e-9, 0.5, *[0.0] * 16]]  # of 12 tokens 5, of 6 tokens 3
    chance = ScriptedChance(sizes, before, [np.arange(18) / 18])
    chosen = noise.choose_spaced_spans(np.ones((1, 18), bool), np.array([3]), chance)
    # The second begins 3 behind the first one's 14, and ends with the row.
    assert np.flatnonzero(chosen).tolist() == [5, 6, 17]


def test_every_candidate_is_chosen_equally_often():
    may_choose = np.tile(np.array([False, True, True, True, True, False]), (20_000, 1))
    chosen = noise.choose_tokens(may_choose, np.full(20_000, 1), np.random.default_rng(0))
    assert np.abs(chosen.mean(axis=0) - [0, 0.25, 0.25, 0.25, 0.25, 0]).max() < 0.0125


def test_replacements_follow_the_dice():
    ids = np.array([[10, 11, 12, 13]])
    chance = ScriptedChance([[0.79, 0.81, 0.91, 0.0]], [[0, 1, 2, 2]])
    chosen = np.array([[True, True, True, False]])
    seen = noise.replace(ids, chosen, 4, np.array([20, 21, 22]), chance)
    assert seen.tolist() == [[4, 21, 12, 13]]


def test_ordinary_ids_are_the_vocabulary_without_the_special_ones():
    assert noise.ordinary_ids(8, (0, 1, 2, 3, 6)).tolist() == [4, 5, 7]
