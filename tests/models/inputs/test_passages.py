"""Windows of passages: all words are in one, and each is read where it has the most context."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from fourstage.errors import ContractViolation, RecipeError
from models.inputs.passages import Passages, slots, spans_within_words, word_places, words_of_span
from models.protocols import Context
from models.served.windows import most_context
from tests.models.memory_corpus import MemoryRows, PlainTokenizer

CONTEXT = Context(PlainTokenizer(100), 8)


class Rows(MemoryRows):
    """Rows whose words have as many tokens as said."""

    def __init__(self, rows, lengths):
        super().__init__(rows)
        self._lengths = [np.array(each, np.int32) for each in lengths]

    def word_lengths(self, i):
        return self._lengths[i]


def test_windows_overlap_cover_all_words_and_cut_none():
    rng = np.random.default_rng(0)
    for length in (1, 5, 6, 7, 40, 50_000):
        lengths = rng.integers(0, 4, length)
        rows = Rows([(range(lengths.sum()), None, "")], [lengths])
        windows = Passages(CONTEXT).windows(rows, 0)
        assert windows[0][0] == 0
        assert windows[-1][1] == length
        for (_, end), (start, later) in pairwise(windows):
            assert start <= end <= later  # equal where the next word is long
        assert all(lengths[start:end].sum() <= 6 for start, end in windows)
        assert np.array_equal(
            np.unique(np.concatenate([np.arange(*w) for w in windows])), np.arange(length)
        )


def test_the_stride_is_in_tokens():
    rows = MemoryRows([(range(10, 22), None, "")])
    assert Passages(CONTEXT, 2).windows(rows, 0) == [(0, 6), (2, 8), (4, 10), (6, 12)]
    assert Passages(CONTEXT).windows(rows, 0) == [(0, 6), (3, 9), (6, 12)]
    with pytest.raises(RecipeError, match="stride: expected 1 or more tokens, got 0"):
        Passages(CONTEXT, 0)


def test_a_word_is_read_where_it_has_the_most_context():
    assert most_context([(0, 6), (3, 9), (6, 10)], 10).tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert most_context([(0, 3)], 3).tolist() == [0, 0, 0]
    # Word 2 has one beside it in both; the second window is longer.
    assert most_context([(0, 4), (1, 8)], 8).tolist() == [0, 0, 1, 1, 1, 1, 1, 1]


def test_a_batch_has_the_question_in_every_window_and_the_places_of_words():
    rows = Rows([([9, 8, 7, 6], [20, 21, 22, 23, 24], "")], [[2, 0, 1, 2]])
    passages = Passages(CONTEXT)
    index = passages.index(rows)
    assert index.entries.tolist() == [(0, 0, 3), (0, 1, 4)]  # 3 tokens of it fit in
    assert index.lengths.tolist() == [8, 8]
    assert index.details["rows_of_several_windows"] == 1
    assert (index.details["truncated_rows"], index.details["longest_row"]) == (1, 4)
    batch, places = passages.segments(rows, index.entries)
    assert batch["token_ids"].tolist() == [
        [2, 9, 8, 3, 20, 21, 22, 3],
        [2, 9, 8, 3, 22, 23, 24, 3],
    ]
    assert [place.tolist() for place in places] == [[[4, 5], [6, 6]], [[4, 4], [5, 6]]]
    assert passages.words(rows, 0, 0, 3).tolist() == [0, 2]
    first, last, mask = slots(places, 8)
    assert first[:, :3].tolist() == [[4, 6, 0], [4, 5, 0]]
    assert last[:, :3].tolist() == [[5, 6, 0], [4, 6, 0]]
    assert mask[:, :3].tolist() == [[1, 1, 0], [1, 1, 0]]


def test_a_word_longer_than_a_window_is_cut_and_an_empty_passage_has_one_window():
    rows = Rows([(range(10, 22), None, ""), ([], None, "")], [[1, 10, 1], []])
    passages = Passages(CONTEXT)
    assert passages.windows(rows, 0) == [(0, 1), (1, 2), (2, 3)]
    batch, places = passages.segments(rows, passages.index(rows).entries)
    assert batch["token_ids"][1].tolist() == [2, *range(11, 17), 3]
    assert places[1].tolist() == [[1, 6]]
    assert places[3].shape == (0, 2)


def test_what_cannot_be_read_is_refused():
    with pytest.raises(ContractViolation, match="no rows"):
        Passages(CONTEXT).index(MemoryRows([]))
    with pytest.raises(RecipeError, match="sequence_length: 5 leaves 1 tokens"):
        Passages(Context(PlainTokenizer(100), 5)).index(MemoryRows([([9, 9], [8], "")]))


def test_a_span_takes_every_word_that_it_touches():
    places = np.array([[0, 2], [3, 6], [6, 7]])
    assert words_of_span(places, 3, 6) == (1, 2)
    assert words_of_span(places, 4, 7) == (1, 3)
    assert words_of_span(places, 0, 1) == (0, 1)
    assert words_of_span(places, 2, 3) == (1, 1)


def test_the_words_of_a_long_passage_are_found_once_for_all_its_windows():
    text = "a rather long passage, read in many windows"
    places = word_places(text)
    assert word_places(f" {text}"[1:]) is places  # an equal text, read again
    assert text[slice(*places[3])] == "passage"
    with pytest.raises(ValueError, match="read-only"):
        places[0] = 1


def test_spans_that_begin_or_end_within_a_word_are_named_by_their_row():
    class Written(Rows):
        def passage(self, i):
            return ["3kg of New York", "Ada \u200d met", "no answer"][i]

    spans = [[0, 1, "number"], [1, 3, "unit"], [7, 15, "place"], [7, 12, "cut"]]
    answers = [json.dumps(spans), json.dumps([[0, 3, "per"], [0, 5, "per"]]), ""]
    rows = Written([([7], None, answer) for answer in answers], [[1, 1, 1, 1], [1, 0, 1], [1, 1]])
    assert spans_within_words(rows) == ["r0", "r0", "r0", "r1"]
