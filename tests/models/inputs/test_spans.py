"""Numbers of hidden spans are those of T5; what is read and what is written make up the text."""

from __future__ import annotations

import numpy as np
import pytest

from models.inputs.spans import hidden_spans, longest_text, span_numbers, with_sentinels
from tests.models.scripted_chance import ScriptedChance

SENTINELS = range(999, 899, -1)


def test_512_tokens_are_read_of_568_and_114_written_as_in_the_paper():
    numbers = longest_text(512 - 1, 0.15, 3.0)  # 1: the end of the text
    assert (numbers.text, numbers.hidden, numbers.spans) == (568, 85, 28)
    assert (numbers.seen + 1, numbers.written + 1) == (512, 114)


@pytest.mark.parametrize("room", [2, 3, 10, 62, 126, 510])
@pytest.mark.parametrize(("rate", "mean"), [(0.15, 3.0), (0.5, 3.0), (0.15, 10.0), (0.9, 1.0)])
def test_the_longest_text_fits_and_one_token_more_would_not(room, rate, mean):
    numbers = longest_text(room, rate, mean)
    assert numbers.seen <= room
    assert span_numbers(numbers.text + 1, rate, mean).seen > room
    shorter = [span_numbers(n, rate, mean) for n in range(2, numbers.text)]
    assert all(each.written <= numbers.written for each in shorter)


def test_a_text_by_hand():
    numbers = span_numbers(12, 0.25, 1.5)
    assert (numbers.hidden, numbers.spans) == (3, 2)
    # Nine tokens stay, cut after the fourth; three are hidden, cut after the first.
    hidden = hidden_spans(numbers, ScriptedChance([3, 0, 1, 2, 4, 5, 6, 7], [0, 1]))
    assert hidden.astype(int).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]
    ids = np.arange(10, 22)
    seen = with_sentinels(ids, hidden, SENTINELS)
    assert seen.tolist() == [10, 11, 12, 13, 999, 15, 16, 17, 18, 19, 998]
    assert with_sentinels(ids, ~hidden, SENTINELS).tolist() == [999, 14, 998, 20, 21]


@pytest.mark.parametrize(("rate", "mean"), [(0.15, 3.0), (0.5, 2.0), (0.8, 1.0)])
def test_what_is_read_and_what_is_written_make_up_the_text(rate, mean):
    rng = np.random.default_rng(0)
    for length in (2, 3, 7, 40, 113):
        ids = rng.integers(10, 800, length)
        numbers = span_numbers(length, rate, mean)
        hidden = hidden_spans(numbers, rng)
        assert hidden.sum() == numbers.hidden
        assert not hidden[0]
        seen, written = (with_sentinels(ids, each, SENTINELS) for each in (hidden, ~hidden))
        assert (len(seen), len(written)) == (numbers.seen, numbers.written)
        spans = np.split(written, np.flatnonzero(written > 800))[1:]
        answers = {int(span[0]): span[1:].tolist() for span in spans}
        assert list(answers) == list(SENTINELS[: numbers.spans])
        again = [token for each in seen.tolist() for token in answers.get(each, [each])]
        assert again == ids.tolist()


def test_all_divisions_are_equally_likely():
    rng = np.random.default_rng(0)
    numbers = span_numbers(7, 3 / 7, 1.5)  # 3 of 7 tokens in 2 spans: 3 · 2 divisions
    found = [tuple(hidden_spans(numbers, rng).tolist()) for _ in range(6000)]
    counts = [found.count(each) for each in set(found)]
    assert len(counts) == 6
    assert max(abs(count - 1000) for count in counts) < 150
