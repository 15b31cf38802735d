"""Labelled rows: layout, cutting, and batches of rows of like length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fourstage.errors import ContractViolation
from models.inputs import rows as rows_module
from models.inputs.rows import framed_rows, labels_of, length_plan, mark_ids, row_index, row_lengths
from models.protocols import Capability, Context
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

CLS, SEP = 2, 3
CONTEXT = Context(PlainTokenizer(100), sequence_length=12)


def test_texts_and_pairs_by_hand():
    rows = MemoryRows([([10, 11], None, "b"), ([10], [20, 21], "a"), ([], None, "")])
    batch = framed_rows(rows, row_index(rows, 12).entries, CONTEXT)
    assert batch["token_ids"].tolist() == [
        [CLS, 10, 11, SEP, 0, 0, 0, 0],
        [CLS, 10, SEP, 20, 21, SEP, 0, 0],
        [CLS, SEP, 0, 0, 0, 0, 0, 0],
    ]
    assert batch["segment_ids"].tolist() == [[0] * 8, [0, 0, 0, 1, 1, 1, 0, 0], [0] * 8]
    assert batch["padding_mask"].sum(axis=1).tolist() == [4, 6, 2]
    assert labels_of(rows.answers, ("a", "b")).tolist() == [1, 0, -1]


def test_a_long_text_keeps_its_head_and_is_counted():
    rows = MemoryRows([(list(range(10, 40)), None, "a"), ([10], None, "a")])
    index = row_index(rows, 12)
    assert index.details == {"truncated_rows": 1, "longest_row": 32}
    assert index.lengths.tolist() == [12, 3]
    batch = framed_rows(rows, index.entries, CONTEXT)
    assert batch["token_ids"][0].tolist() == [CLS, *range(10, 20), SEP]


@pytest.mark.parametrize(
    ("places", "kept"),
    [
        ((), (10, 20)),  # no mark
        ((12, 19), (10, 20)),  # both in the head
        ((22, 27), (20, 30)),  # (22 + 28 - 10) / 2: in the middle
        ((12, 20), (11, 21)),
        ((20, 38), (20, 30)),  # too far apart: from the first one on
        ((39,), (30, 40)),  # never beyond the end
    ],
)
def test_a_long_text_is_cut_round_its_marks(places, kept):
    ids = np.arange(10, 40)
    rows = MemoryRows([(ids.tolist(), None, "a")])
    context = replace(CONTEXT, marks=tuple((place,) for place in places))
    batch = framed_rows(rows, np.array([0]), context)
    assert batch["token_ids"][0].tolist() == [CLS, *range(*kept), SEP]


def test_a_mark_of_several_tokens_is_found_whole_and_in_a_text_of_a_pair_too():
    rows = MemoryRows([([*range(10, 30), 7, 8, 30], [50, 7, 51], "a")])
    context = replace(CONTEXT, marks=((7, 8),))
    batch = framed_rows(rows, np.array([0]), context)
    assert batch["token_ids"][0].tolist() == [CLS, 27, 28, 29, 7, 8, 30, SEP, 50, 7, 51, SEP]


def test_entities_are_cut_with_the_texts_that_name_them():
    class Named(MemoryRows):
        def entities(self, i: int) -> tuple[np.ndarray, ...]:
            return tuple(np.where(ids % 3, 0, ids * 1000) for ids in self.texts(i))

    rows = Named([([*range(10, 30), 7, 8, 30], [50, 7, 51], "a"), ([10, 12], None, "a")])
    context = replace(CONTEXT, marks=((7, 8),), network=frozenset({Capability.ENTITIES}))
    batch = framed_rows(rows, np.array([0, 1]), context)
    ids = batch["token_ids"]
    assert ids[0].tolist() == [CLS, 27, 28, 29, 7, 8, 30, SEP, 50, 7, 51, SEP]
    text = ids * (ids > SEP)
    assert np.array_equal(batch["entity_ids"], np.where(text % 3, 0, text * 1000))
    assert batch["entity_ids"][1].tolist()[:4] == [0, 0, 12_000, 0]
    assert "entity_ids" not in framed_rows(rows, np.array([0]), CONTEXT)


def test_a_marking_is_looked_for_as_the_tokenizer_spells_it():
    from models.tokenizers.byte_bpe import learn
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

    wordpiece = WordPiece([*SPECIAL_TOKENS, "<", "a"], lowercase=True)
    assert mark_ids(wordpiece, ["<<"]) == ((5, 5),)
    bytes_ = learn(["a <<b>> c. "] * 9, vocabulary_size=300)
    (ids,) = bytes_.encode(["a <<b>> c"])
    for mark in ("<<", ">>"):
        runs = [tuple(ids[i : i + n].tolist()) for i in range(len(ids)) for n in (1, 2, 3)]
        assert set(mark_ids(bytes_, [mark])) & set(runs), mark


def test_of_a_long_pair_the_longer_text_is_cut_first():
    rows = MemoryRows([(list(range(10, 20)), [50, 51, 52], "a")])
    batch = framed_rows(rows, np.array([0]), CONTEXT)
    assert batch["token_ids"][0].tolist() == [CLS, *range(10, 16), SEP, 50, 51, 52, SEP]
    rows = MemoryRows([(list(range(10, 30)), list(range(50, 70)), "a")])
    batch = framed_rows(rows, np.array([0]), CONTEXT)
    assert batch["token_ids"][0].tolist() == [CLS, *range(10, 15), SEP, *range(50, 54), SEP]


def test_a_split_without_rows_is_refused():
    with pytest.raises(ContractViolation, match="no rows"):
        row_index(MemoryRows([]), 12)


def test_few_lengths_the_longest_among_them():
    assert row_lengths(128) == (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128)
    assert row_lengths(200)[-4:] == (128, 160, 192, 200)
    assert row_lengths(12) == (8, 12)
    assert row_lengths(5) == (5,)


def test_fewer_lengths_where_whole_steps_are_compiled(monkeypatch):
    monkeypatch.setattr(rows_module, "jit_compile", lambda: "auto")
    assert row_lengths(128) == (32, 64, 96, 128)
    assert row_lengths(12) == (8, 12)
    assert row_lengths(5) == (5,)


@given(st.integers(1, 500), st.integers(1, 40), st.one_of(st.none(), st.integers(0, 2**31)))
def test_a_pass_holds_every_row_once(num_rows, batch_size, seed):
    lengths = np.random.default_rng(0).integers(3, 128, num_rows)
    plan = length_plan(lengths, batch_size, None if seed is None else np.random.default_rng(seed))
    assert plan.shape[1] == batch_size
    real = plan[plan >= 0]
    assert sorted(real.tolist()) == list(range(num_rows))
    assert (plan < 0).sum() < batch_size
    assert (plan >= 0).any(axis=1).all()


def test_batches_hold_rows_of_like_length():
    lengths = np.random.default_rng(0).integers(3, 128, 2000)
    plan = length_plan(lengths, 16, np.random.default_rng(0))
    spread = np.ptp(lengths[plan], axis=1).mean()
    assert spread < 12
