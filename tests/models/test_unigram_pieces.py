"""Pieces of a unigram model: expected counts by enumeration, stretches, what is kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from models import unigram_pieces
from models.unigram_pieces import alphabet_of, learn_pieces, stretches
from tests.models.odd_lines import lines


def cuts(text: str, pieces: dict[str, float]) -> Iterator[list[str]]:
    """Every way to cut a text into pieces."""
    if not text:
        yield []
    for end in range(1, len(text) + 1):
        if text[:end] in pieces:
            yield from ([text[:end], *rest] for rest in cuts(text[end:], pieces))


def test_expected_counts_are_those_of_all_cuts():
    texts, often = ["abab", "ba", "abc"], np.array([3.0, 2.0, 5.0])
    names, counts, lattice = unigram_pieces._seeds(texts, often, list("abc"), 100)
    assert dict(zip(names, counts, strict=True)) == {
        **{"a": 13, "b": 13, "c": 5, "ab": 11, "ba": 5, "bc": 5},
        **{"aba": 3, "bab": 3, "abc": 5, "abab": 3},
    }
    given = {name: 0.3 / (i + 2) for i, name in enumerate(names)}
    expected: Counter[str] = Counter()
    for text, count in zip(texts, often, strict=True):
        ways = [(way, math.prod(given[p] for p in way)) for way in cuts(text, given)]
        total = sum(p for _, p in ways)
        for way, p in ways:
            for piece in way:
                expected[piece] += count * p / total
    found = lattice.expected(np.array([given[name] for name in names]), often)
    np.testing.assert_allclose(found, [expected[name] for name in names], rtol=1e-12)


def test_what_a_piece_is_worth_is_what_its_other_cuts_lack():
    pieces = {"a": 0.4, "b": 0.3, "ab": 0.2, "aab": 0.1}
    spelled = unigram_pieces._spelled(list(pieces))
    counts, given = np.array([5.0, 5.0, 4.0, 2.0]), np.array(list(pieces.values()))
    may_go = np.array([False, False, True, True])
    lost = unigram_pieces._lost(counts, given, spelled, may_go)
    others = 0.4 * 0.4 * 0.3 + 0.4 * 0.2  # a-a-b, a-ab
    assert lost[:2].tolist() == [np.inf, np.inf]
    np.testing.assert_allclose(lost[2:], [4 * math.log(0.2 / 0.12), 2 * math.log(0.1 / others)])


def test_a_stretch_is_letters_or_ideographs_or_digits_or_signs_with_the_space_before():
    text = "▁naïve▁Ünd12.5mg▁(e\u0301)是书▁▁x"
    assert stretches(text) == [
        *("▁naïve", "▁Ünd", "12", ".", "5", "mg", "▁(", "e\u0301", ")", "是书", "▁", "▁x")
    ]
    assert [len(part) for part in stretches("a" * 70)] == [32, 32, 6]


def test_probabilities_sum_to_one_and_no_piece_goes_beyond_a_stretch():
    texts = ["▁" + "▁".join(line.split()) for line in lines()]
    alphabet = {c for text in texts for c in text}
    pieces = learn_pieces(texts, 400, alphabet)
    assert len(pieces) == 400
    assert {c for c in alphabet if len(c) == 1} <= {piece for piece, _ in pieces}
    assert sum(math.exp(score) for _, score in pieces) == pytest.approx(1, abs=0.02)
    assert all(stretches(piece) == [piece] for piece, _ in pieces)
    assert {"▁the", "▁learned", "▁Network"} <= {piece for piece, _ in pieces}
    assert [score for _, score in pieces] == sorted((s for _, s in pieces), reverse=True)


def test_a_short_text_gives_as_many_as_it_has():
    assert [piece for piece, _ in learn_pieces(["ab", "ab"], 50, "ab")] == ["ab", "a", "b"]


def test_an_alphabet_covers_its_share_of_the_text():
    counts = {"a": 90, "b": 9, "c": 1}
    assert alphabet_of(counts, 0.99, 10) == ["a", "b"]
    assert alphabet_of(counts, 1.0, 10) == ["a", "b", "c"]
    assert alphabet_of(counts, 1.0, 1) == ["a"]
