"""Texts that bring a task's prefix along are told from texts that do not."""

from __future__ import annotations

import numpy as np
import pytest

from models.served.pieces import encoded
from models.served.texts import prefix_fault

PREFIXES = ["translate English to German:", "stsb:", "summarize"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("translate English to German: A plane lands.", PREFIXES[0]),
        ("  Translate\tenglish  to German:A plane lands.", PREFIXES[0]),
        ("stsb: A plane lands.", PREFIXES[1]),
        ("stsb:", PREFIXES[1]),
    ],
)
def test_a_text_with_a_known_prefix_is_told_which_ones_there_are(text, named):
    assert prefix_fault(text, PREFIXES) == (
        f"it begins with the prefix {named!r}; expected a text without one, as"
        " 'translate English to German:' is put before each and other tasks are not answered"
        " (known prefixes: 'translate English to German:', 'stsb:', 'summarize')"
    )


@pytest.mark.parametrize(
    "text",
    [
        "A plane lands.",
        "",
        "translate English to Germans: no",
        "they said stsb: no",
        "Summarize what they said.",  # a word with which a text may begin
    ],
)
def test_other_texts_have_no_fault(text):
    assert prefix_fault(text, PREFIXES) is None
    assert prefix_fault("stsb: A plane lands.", []) is None


def test_half_a_surrogate_pair_is_dropped_before_the_graph_reads_texts():
    boxes = np.zeros((1, 4))
    *columns, seen = encoded((["a\ud83d b", "好"], [["", "\udc00c"]], boxes))
    assert columns == [[b"a b", "好".encode()], [[b"", b"c"]]]
    assert seen is boxes
