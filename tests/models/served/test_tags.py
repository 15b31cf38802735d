"""Tags of words: every legal sequence stands for its own spans, and illegal ones are read."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from models.served.tags import SCHEMES, allowed, spans_of, tag_names, tags_of

WORDS = 4


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_sequence_is_legal_just_if_its_spans_have_its_tags(scheme):
    tags = tag_names(("X", "Y"), scheme)
    follows, starts, ends = allowed(tags, scheme)
    legal = 0
    for numbers in product(range(len(tags)), repeat=WORDS):
        sequence = [tags[number] for number in numbers]
        may = starts[numbers[0]] and ends[numbers[-1]]
        may = may and all(follows[a, b] for a, b in pairwise(numbers))
        assert may == (tags_of(spans_of(sequence), WORDS, scheme) == sequence)
        legal += bool(may)
    assert legal > 100


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O I-X I-X O", [(1, 3, "X")]),
        ("B-X I-Y I-Y O", [(0, 1, "X"), (1, 3, "Y")]),
        ("B-X B-X I-X E-X", [(0, 1, "X"), (1, 4, "X")]),
        ("E-X S-X S-Y B-Y", [(0, 1, "X"), (1, 2, "X"), (2, 3, "Y"), (3, 4, "Y")]),
    ],
)
def test_an_illegal_sequence_is_read_as_the_conll_scorer_reads_it(tags, spans):
    assert spans_of(tags.split()) == spans


def test_of_spans_that_share_a_word_the_first_keeps_it_and_an_empty_one_has_no_tag():
    spans = [(0, 2, "X"), (1, 3, "Y"), (3, 3, "Y")]
    assert tags_of(spans, WORDS, "iob2") == ["B-X", "I-X", "O", "O"]
