"""Batches: pure functions of their number, mixed by tokens, every example once a pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.heads.sequence_classification import SequenceClassification
from models.inputs.batches import Feed, batches
from models.objectives.masked_lm import MaskedLM
from models.objectives.next_sentence import NextSentence
from models.objectives.sentence_distance import SentenceDistance
from models.objectives.sentence_order import SentenceOrder
from models.objectives.sentence_reordering import SentenceReordering
from models.objectives.sentence_structure import SentenceStructure
from models.protocols import Context, Index
from tests.models.memory_corpus import MemoryCorpus, MemoryRows, PlainTokenizer, random_corpus

CONTEXT = Context(PlainTokenizer(100), sequence_length=32, label_names=("a", "b"))
CORPUS = random_corpus(200, 100)
ROWS = MemoryRows(
    [
        (np.random.default_rng(i).integers(5, 100, 3 + i % 40).tolist(), None, "ab"[i % 2])
        for i in range(150)
    ]
)


def pretraining(seed: int = 1, **changes):
    arguments = {
        "corpora": {"one": (CORPUS, 1.0)},
        "objectives": [MaskedLM(CONTEXT), NextSentence(CONTEXT)],
        "batch_size": 8,
    } | changes
    return batches(context=CONTEXT, seed=seed, **arguments)


def equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def test_a_batch_is_a_function_of_its_number():
    made = pretraining()
    first = [made.batch(k) for k in range(6)]
    assert equal(made.batch(3), first[3]), "asked twice"
    assert equal(pretraining().batch(3), first[3]), "made anew"
    assert not equal(first[2], first[3])
    assert not equal(pretraining(seed=2).batch(3), first[3])


@pytest.mark.parametrize("start", [0, 1, 5, 1000])
def test_iteration_starts_anywhere_without_replay(start):
    made = pretraining()
    several = list(made.iterate(start, start + 4))
    assert len(several) == 4
    assert all(equal(batch, made.batch(start + k)) for k, batch in enumerate(several))


def test_iteration_of_rows_starts_anywhere_too():
    made = pretraining(corpora={"rows": (ROWS, 1.0)}, objectives=[SequenceClassification(CONTEXT)])
    for start in (0, 7, 100):
        several = list(made.iterate(start, start + 3))
        assert all(equal(batch, made.batch(start + k)) for k, batch in enumerate(several))


def test_keys_types_and_shapes():
    batch = pretraining().batch(0)
    assert {key: (value.shape, str(value.dtype)) for key, value in batch.items()} == {
        "token_ids": ((8, 32), "int32"),
        "segment_ids": ((8, 32), "int32"),
        "padding_mask": ((8, 32), "int32"),
        "next_sentence_labels": ((8,), "int32"),
        "mask_positions": ((8, 5), "int32"),
        "mask_labels": ((8, 5), "int32"),
        "mask_weights": ((8, 5), "float32"),
        "row_weights": ((8,), "float32"),
    }


def test_the_noise_is_drawn_anew_in_every_pass():
    corpus = MemoryCorpus([[list(range(5, 95))]])
    made = pretraining(corpora={"one": (corpus, 1.0)}, objectives=[MaskedLM(CONTEXT)], batch_size=3)
    assert made.batches_in_pass() == 1
    rows = [
        tuple(sorted(map(tuple, np.sort(made.batch(k)["mask_labels"], axis=1)))) for k in range(5)
    ]
    assert len(set(rows)) == 5


def test_every_example_comes_once_a_pass_in_an_order_of_its_own():
    made = pretraining(objectives=[MaskedLM(CONTEXT)], batch_size=10)
    size = len(made.feeds[0].index)
    drawn = [member for k in range(3 * size // 10) for member in made.members(k)]
    for number in range(2):
        one = [example for _, example in drawn[number * size : (number + 1) * size]]
        assert sorted(one) == list(range(number * size, (number + 1) * size))
    assert [e for _, e in drawn[:size]] != [e - size for _, e in drawn[size : 2 * size]]
    assert drawn[:size] != sorted(drawn[:size])


def _pass(made, number: int) -> np.ndarray:
    """What made the examples of a pass of the first feed, (examples,)."""
    (feed,) = made.feeds
    size = len(feed.index)
    return feed.entries(np.arange(number * size, (number + 1) * size))


@pytest.mark.parametrize(
    "objective",
    [NextSentence, SentenceOrder, SentenceStructure, SentenceDistance, SentenceReordering],
)
def test_pairs_and_orders_are_drawn_anew_in_every_pass(objective):
    made = pretraining(objectives=[objective(CONTEXT)])
    first, second, third = (
        {entry.tobytes() for entry in _pass(made, number)} for number in range(3)
    )
    for one, other in ((first, second), (second, third)):
        assert len(one & other) < 0.9 * len(one), "some come again by chance"
    again = pretraining(objectives=[objective(CONTEXT)])
    assert np.array_equal(_pass(made, 2), _pass(again, 2))
    later = len(made.feeds[0].index) * 2 // 8
    assert equal(made.batch(later), again.batch(later))


def test_the_seed_decides_the_order_the_noise_and_the_pairs_each_by_itself():
    masks, pairs = [MaskedLM(CONTEXT)], [NextSentence(CONTEXT)]
    one, other = (pretraining(seed, objectives=masks) for seed in (1, 2))
    assert one.members(0) != other.members(0)
    one, other = (pretraining(seed, objectives=masks, once=True) for seed in (1, 2))
    assert one.members(0) == other.members(0)
    hidden = [each.batch(0)["mask_positions"] for each in (one, other)]
    assert not np.array_equal(*hidden)
    one, other = (pretraining(seed, objectives=pairs) for seed in (1, 2))
    for number in range(3):
        assert not np.array_equal(_pass(one, number), _pass(other, number))


def test_corpora_of_the_same_text_have_pairs_of_their_own_in_every_pass():
    corpora = {"one": (CORPUS, 0.5), "other": (CORPUS, 0.5)}
    one, other = pretraining(corpora=corpora, objectives=[NextSentence(CONTEXT)]).feeds
    for number in range(3):
        assert one.draw(number).entries.tobytes() != other.draw(number).entries.tobytes()


def test_what_only_later_passes_have_is_read_in_some_of_them():
    """The first pass packs its text into five pairs, later ones into seven."""
    sizes = {0: 5}
    feed = Feed(
        "one",
        None,
        lambda number: Index(*[np.arange(sizes.get(number, 7), dtype=np.int64)] * 2),
        example_share=1.0,
    )
    assert sorted(feed.entries(np.arange(5))) == list(range(5))
    for start in (5, 10, 15):  # each pass has five of them, and none twice
        assert len(set(feed.entries(np.arange(start, start + 5)).tolist())) == 5
    assert set(feed.entries(np.arange(5, 20)).tolist()) == set(range(7))


def test_windows_stay_what_they_are_in_every_pass():
    made = pretraining(objectives=[MaskedLM(CONTEXT)])
    first, second = (sorted(map(tuple, _pass(made, number))) for number in range(2))
    assert first == second


def test_adding_an_objective_does_not_move_the_masks_of_another():
    pairs = NextSentence(CONTEXT)
    one = pretraining(objectives=[MaskedLM(CONTEXT), pairs]).batch(2)
    two = pretraining(objectives=[MaskedLM(CONTEXT), pairs, pairs]).batch(2)
    assert np.array_equal(one["mask_positions"], two["mask_positions"])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_corpora_are_mixed_by_share_of_tokens(share):
    # Documents of a sentence or two make short pairs, long ones make full rows.
    short = random_corpus(3000, 100, 1, sentences=(1, 3), words=(3, 6))
    long = random_corpus(300, 100, 2, sentences=(20, 40))
    made = pretraining(corpora={"short": (short, share), "long": (long, 1 - share)})
    tokens = Counter()
    for k in range(150):
        sizes = made.batch(k)["padding_mask"].sum(axis=1)
        for (feed, _), size in zip(made.members(k), sizes, strict=True):
            tokens[made.feeds[feed].name] += int(size)
    assert tokens["short"] / sum(tokens.values()) == pytest.approx(share, abs=0.03)
    assert sum(tokens.values()) / 150 == pytest.approx(made.tokens_per_batch, rel=0.03)


def test_the_order_in_which_corpora_are_named_is_nothing():
    other = random_corpus(100, 100, 5)
    one = pretraining(corpora={"a": (CORPUS, 0.3), "b": (other, 0.7)})
    two = pretraining(corpora={"b": (other, 0.7), "a": (CORPUS, 0.3)})
    assert equal(one.batch(4), two.batch(4))


def test_passes_are_reported_for_each_corpus():
    made = pretraining(corpora={"a": (CORPUS, 0.5), "b": (random_corpus(50, 100, 5), 0.5)})
    passes = made.passes(100)
    for feed in made.feeds:
        drawn = sum(made.feeds[number] is feed for k in range(100) for number, _ in made.members(k))
        assert passes[feed.name] == pytest.approx(drawn / len(feed.index), rel=0.02)
    assert made.passes(round(made.batches_in_pass("b")))["b"] == pytest.approx(1.0, rel=0.05)


def test_read_once_every_row_is_there_once_and_fillers_weigh_nothing():
    made = pretraining(
        corpora={"rows": (ROWS, 1.0)},
        objectives=[SequenceClassification(CONTEXT)],
        batch_size=32,
        once=True,
    )
    assert len(made) == 5  # 150 rows
    seen = []
    for k, batch in enumerate(made.iterate()):
        assert len(batch["row_weights"]) == 32
        for (_, row), weight, ids in zip(
            made.members(k), batch["row_weights"], batch["token_ids"], strict=True
        ):
            assert weight == (row >= 0)
            if row >= 0:
                text = ROWS.texts(row)[0][:30]
                assert ids[1 : 1 + len(text)].tolist() == text.tolist()
                seen.append(row)
    assert sorted(seen) == list(range(150))


def test_held_out_text_read_once_keeps_its_noise():
    made = pretraining(objectives=[MaskedLM(CONTEXT)], once=True, batch_size=7)
    assert all(equal(a, b) for a, b in zip(made.iterate(), made.iterate(), strict=True))
    total = sum(float(batch["row_weights"].sum()) for batch in made.iterate())
    assert total == len(made.feeds[0].index)


def test_rows_are_padded_no_further_than_their_batch_needs():
    made = pretraining(corpora={"rows": (ROWS, 1.0)}, objectives=[SequenceClassification(CONTEXT)])
    widths = {made.batch(k)["token_ids"].shape[1] for k in range(19)}
    assert widths == {8, 16, 24, 32}


def test_fewer_examples_than_a_batch_are_refused_with_the_numbers():
    few = random_corpus(2, 100, sentences=(1, 2))
    with pytest.raises(ContractViolation, match=r"one: 2 documents .* fewer than one batch of 64"):
        pretraining(corpora={"one": (few, 1.0)}, batch_size=64)


def test_in_lanes_each_row_goes_on_where_it_ended():
    text = random_corpus(3, 100, sentences=(20, 21))
    length = -(-(text.num_tokens + 2) // 7) + 2  # seven windows, the last one reaching back
    context = Context(PlainTokenizer(100), length)
    given = ({"one": (text, 1.0)}, [MaskedLM(context)], context, 3, 1)
    made = batches(*given, in_lanes=True)
    nobody = (-1, -1)
    assert len(made.feeds[0].index) == 7
    assert [made.members(k) for k in range(5)] == [
        [(0, 0), (0, 3), (0, 6)],
        [(0, 1), (0, 4), nobody],
        [(0, 2), (0, 5), nobody],
        [(0, 7), (0, 10), (0, 13)],
        [(0, 8), (0, 11), nobody],
    ]
    once = batches(*given, once=True, in_lanes=True)
    assert len(once) == 3
    assert [once.members(k) for k in range(3)] == [made.members(k) for k in range(3)]


def test_lanes_are_shared_out_by_the_corpora():
    context = Context(PlainTokenizer(100), 32)
    corpora = {"much": (CORPUS, 0.7), "little": (random_corpus(50, 100, 1), 0.3)}
    made = batches(corpora, [MaskedLM(context)], context, 8, 1, in_lanes=True)
    assert [feed.name for feed in made.feeds] == ["little", "much"]
    assert [feed for feed, _ in made.members(0)] == [0] * 2 + [1] * 6  # of 2.4 and 5.6 rows
    for number, feed in enumerate(made.feeds):  # a pass ends where each of its rows has been read
        first = next(k for k in range(1000) if (number, len(feed.index)) in made.members(k))
        assert made.passes(first)[feed.name] == 1.0
    with pytest.raises(RecipeError, match="at least 2 for 2 corpora, got 1"):
        batches(corpora, [MaskedLM(context)], context, 1, 1, in_lanes=True)


def test_in_lanes_an_epoch_reads_every_window_and_batches_are_as_large_as_they_are():
    text = MemoryCorpus([[[7] * (65 * 10 - 1)]])  # 65 windows in 64 lanes, 33 of them of two places
    context = Context(PlainTokenizer(100), 12)
    made = batches({"one": (text, 1.0)}, [MaskedLM(context)], context, 64, 1, in_lanes=True)
    assert len(made.feeds[0].index) == 65
    updates = round(made.batches_in_pass())
    assert updates == 2
    read = [member for k in range(updates) for member in made.members(k) if member[1] >= 0]
    assert sorted(read) == [(0, i) for i in range(65)]
    assert made.passes(updates) == {"one": 1.0}
    sizes = [
        (made.batch(k)["padding_mask"].sum(axis=1) * made.batch(k)["row_weights"]).sum()
        for k in range(updates)
    ]
    assert made.tokens_per_batch == np.mean(sizes)


def test_an_epoch_of_lanes_ends_with_the_corpus_that_takes_longest():
    context = Context(PlainTokenizer(100), 32)
    corpora = {"much": (CORPUS, 0.5), "little": (random_corpus(50, 100, 1), 0.5)}
    made = batches(corpora, [MaskedLM(context)], context, 7, 1, in_lanes=True)
    longest = max(made.batches_in_pass(name) for name in corpora)
    assert made.batches_in_pass() == longest
    for name in corpora:
        assert made.passes(round(made.batches_in_pass(name)))[name] == 1.0


def test_rows_that_fill_the_last_batch_of_a_pass_are_no_part_of_it():
    rows = MemoryRows(ROWS.rows[:33])
    objectives = [SequenceClassification(CONTEXT)]
    made = pretraining(corpora={"rows": (rows, 1.0)}, objectives=objectives, batch_size=32)
    assert made.batches_in_pass() == 2
    assert made.passes(2) == {"rows": 1.0}
    assert made.passes(5) == {"rows": 2.5}
