"""Task schedule: objectives have their shares of the updates at every moment; starts anywhere."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.inputs.batches import batches
from models.inputs.task_schedule import TaskSchedule, whose_turn
from models.objectives.masked_lm import MaskedLM
from models.objectives.sentence_distance import SentenceDistance
from models.protocols import Context
from tests.models.memory_corpus import PlainTokenizer, random_corpus

CONTEXT = Context(PlainTokenizer(100), 32)


def order(shares: list[float], updates: int) -> str:
    return "".join("abcdef"[turn] for turn in islice(whose_turn(shares), updates))


def test_turns_by_hand():
    assert order([1.0], 4) == "aaaa"
    assert order([0.5, 0.5], 6) == "ababab"
    assert order([0.25] * 4, 8) == "abcdabcd"
    # Who is owed a quarter of an update or more may come, first who is first owed three quarters:
    #   owed .5 .3 .2: a has .25 to go at .5 an update, b .45 at .3; c must wait
    #   owed  0 .6 .4: b has .15 to go at .3, c .35 at .2
    #   owed .5 -.1 .6: a has .25 to go at .5, c .15 at .2
    #   owed  0 .2 .8: only c may come …
    assert order([0.5, 0.3, 0.2], 10) == "abacabacba"


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 400))
def test_after_any_number_of_updates_each_has_had_its_share_to_within_one(weights, updates):
    shares = [weight / sum(weights) for weight in weights]
    taken = np.eye(len(shares))[list(islice(whose_turn(shares), updates))].cumsum(axis=0)
    owed = np.arange(1, updates + 1)[:, None] * np.array(shares)
    assert np.abs(taken - owed).max() < 1


def made(**weights: float) -> TaskSchedule:
    text = random_corpus(60, 100)
    objectives = {"masked_lm": MaskedLM(CONTEXT), "sentence_distance": SentenceDistance(CONTEXT)}
    groups = {
        name: batches({"text": (text, 1.0)}, [objectives[name]], CONTEXT, 4, seed, task=seed)
        for seed, name in enumerate(weights)
    }
    return TaskSchedule(groups, weights)


@pytest.mark.parametrize("start", [0, 1, 7, 100])
def test_iteration_starts_anywhere_and_each_group_reads_its_batches_in_order(start):
    turns = made(masked_lm=3.0, sentence_distance=1.0)
    for k, (name, batch) in enumerate(islice(made(**turns.shares).iterate(start), 9), start):
        assert name == turns.name(k)
        expected = turns.groups[name].batch(turns.counts(0, k)[name])
        assert batch.keys() == expected.keys()
        assert all(np.array_equal(batch[key], expected[key]) for key in batch)
        assert ("mask_labels" in batch) == (name == "masked_lm")
        assert batch.get("task_ids", np.zeros(4)).tolist() == [turns.groups[name]._task] * 4


def test_counts_tokens_and_passes_are_those_of_the_turns():
    turns = made(masked_lm=3.0, sentence_distance=1.0)
    assert turns.counts(0, 40) == {"masked_lm": 30, "sentence_distance": 10}
    assert turns.counts(10, 10) == {"masked_lm": 0, "sentence_distance": 0}
    one, two = turns.counts(0, 13), turns.counts(13, 40)
    assert {name: one[name] + two[name] for name in one} == turns.counts(0, 40)
    masked, distance = turns.groups.values()
    assert turns.tokens_per_batch == pytest.approx(
        0.75 * masked.tokens_per_batch + 0.25 * distance.tokens_per_batch
    )
    passes = masked.passes(30)["text"] + distance.passes(10)["text"]
    assert turns.passes(40)["text"] == pytest.approx(passes)
    updates = round(turns.batches_in_pass())
    done = turns.counts(0, updates)
    read = [turns.groups[name].passes(done[name])["text"] for name in done]
    assert min(read) == pytest.approx(1.0, rel=0.1), "each group has read the text"
