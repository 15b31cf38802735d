"""Answers: what each kind of value becomes, and what is said of a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.answers import (
    CLEANED,
    DROPPED,
    LEFT_OUT,
    MOVED,
    TRIMMED,
    UNITS,
    UnusableError,
    after_cleaning,
    answer_of,
    tagged,
    texts_in,
)
from corpora.cleaning import clean
from data_contracts.sources import Source
from tests.corpora.conftest import source_of

TEXT = "Ada Lovelace met Bob in Oslo"
CONTEXT = "Ada met Bob. Bob left Oslo."
FIELDS: dict[str, dict[str, Any]] = {
    "extract": {"text": "q", "text_pair": "c", "label": "a"},
    "choice": {"text": "q", "choices": ["a", "b"], "label": "a"},
}


def of(kind: str, **settings: Any) -> Source:
    fields = FIELDS.get(kind, {"text": "text", "label": "label"})
    return source_of(files="x", fields=fields, answers=kind, **settings)


def answer(value: Any, source: Source) -> str:
    return answer_of(value, source, TEXT, CONTEXT, ("no", "yes", "maybe")).text


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("number", "5", "5.0"),
        ("number", " 5.000 ", "5.0"),
        ("number", 5, "5.0"),
        ("number", "-1e-3", "-0.001"),
        ("number", -0.0, "0.0"),
        ("number", 3.4e38, "3.4e+38"),
        ("label_set", ["b", "a", "b"], '["a", "b"]'),
        ("label_set", [], "[]"),
        ("label_set", [3, True], '["3", "true"]'),
        ("spans", [], "[]"),
        ("spans", [[17, 20, "人"], [0, 3, "b"]], '[[0, 3, "b"], [17, 20, "人"]]'),
        ("spans", [["0", "3", "b"], [0, 3, "b"]], '[[0, 3, "b"]]'),
        ("spans", [{"start": 0, "end": 3, "label": "b"}], '[[0, 3, "b"]]'),
        ("spans", [{"start_offset": 0, "end_offset": 3, "label": "b", "id": 9}], '[[0, 3, "b"]]'),
        ("spans", [{"start": 0, "end": 3, "text": "Ada", "labels": ["b"]}], '[[0, 3, "b"]]'),
        ("spans", [{"value": {"start": 0, "end": 3, "labels": ["b"]}}], '[[0, 3, "b"]]'),
        ("spans", {"b": {"Ada": [[0, 3]], "Bob": [[17, 20]]}}, '[[0, 3, "b"], [17, 20, "b"]]'),
        ("spans", {"b": [[0, 3]]}, '[[0, 3, "b"]]'),
        ("extract", [], "[]"),
        ("extract", {"text": [], "answer_start": []}, "[]"),
        ("extract", [{"text": "Ada", "answer_start": "0"}], '[[0, "Ada"]]'),
        (
            "extract",
            {"text": ["Ada", "Oslo"], "answer_start": [0, 22]},
            '[[0, "Ada"], [22, "Oslo"]]',
        ),
        ("extract", [[13, "Bob"]], '[[13, "Bob"]]'),
        ("extract", "Oslo", '[[22, "Oslo"]]'),
        ("choice", 2, "2"),
        ("choice", " 0", "0"),
        ("choice", "B", "1"),
        ("text", "a  text", '["a text"]'),
        ("text", ["b", "a"], '["b", "a"]'),
        ("mine", "a text", "a text"),
        ("mine", {"b": 1, "a": [2]}, '{"a": [2], "b": 1}'),
    ],
)
def test_equal_answers_are_equal_texts(kind: str, value: Any, expected: str):
    assert answer(value, of(kind)) == expected


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("label", ["a"], "a list or a mapping instead of one label"),
        ("label", " ", "no label"),
        ("number", "five", "not a number"),
        ("number", "1_000", "not a number"),
        ("number", True, "not a number"),
        ("number", " 1,5", "not a number (a decimal comma? write 1.5)"),
        ("number", "1,5,2", "not a number"),
        ("number", float("nan"), "a number that is infinite, or not a number"),
        ("number", "1e999", "a number that is infinite, or not a number"),
        ("number", " -Inf", "a number that is infinite, or not a number"),
        ("number", "NaN", "a number that is infinite, or not a number"),
        ("number", "1e39", "a number beyond ±3.4e38, which 32 bits cannot hold"),
        ("number", -3.5e38, "a number beyond ±3.4e38, which 32 bits cannot hold"),
        ("number", 10**400, "a number that is infinite, or not a number"),
        ("number", None, "no label"),
        ("label_set", "a", "not a list of labels"),
        ("label_set", [["a"]], "a label that is no name"),
        ("label_set", ["x" * 200], "a label of more than 100 characters"),
        ("spans", [[25, 29, "b"]], "a span outside the text"),
        ("spans", [[-1, 2, "b"]], "a span outside the text"),
        ("spans", [[3, 1, "b"]], "a span outside the text"),
        ("spans", [[3, 3, "b"]], "an empty span"),
        ("spans", [[3, 4, "b"]], "a span of blanks alone"),
        ("spans", [[0, 3, "b"], [2, 5, "b"]], "spans that overlap"),
        ("spans", [[0, 3, "a"], [0, 3, "b"]], "spans that overlap"),
        ("spans", [[0, 3.5, "b"]], "an offset that is not a whole number"),
        ("spans", [[0, 3]], "a span of unknown shape"),
        ("spans", {"b": "Ada"}, "a span of unknown shape"),
        ("spans", [{"label": "b"}], "a span of unknown shape"),
        ("spans", {"b": {"Ada": [[1, 4]]}}, "a span whose text is not at its offset"),
        ("spans", [[0, 3, ""]], "a label that is no name"),
        ("extract", [{"answer_start": 0}], "answers of unknown shape"),
        ("extract", {"text": ["a"], "answer_start": []}, "answers of unknown shape"),
        ("extract", [{"text": "Eve", "answer_start": 0}], "answer text not at its offset"),
        ("extract", [{"text": "Bob", "answer_start": 9}], "answer text not at its offset"),
        ("extract", [{"text": "", "answer_start": 0}], "an answer without text"),
        ("text", " ", "no label"),
        ("text", [], "an answer without text"),
        ("text", ["", "\u200b"], "an answer without text"),
        ("text", 3, "an answer that is neither a text nor a list of texts"),
        ("text", ["a", None], "an answer that is neither a text nor a list of texts"),
        ("choice", 3, "the right choice is not among the choices"),
        ("choice", "-1", "the right choice is not among the choices"),
        ("choice", "yes", "a choice that is neither a number nor a letter"),
        ("choice", True, "a choice that is neither a number nor a letter"),
    ],
)
def test_what_is_wrong_is_a_phrase_that_quotes_no_text(kind: str, value: Any, reason: str):
    with pytest.raises(UnusableError) as caught:
        answer(value, of(kind))
    assert caught.value.reason == reason


def test_reference_answers_are_found_or_left_out_and_told():
    wrong = [{"text": "Ada", "answer_start": 1}, {"text": "Bob", "answer_start": 9}]
    found = answer_of([*wrong, [8, "Bob"]], of("extract"), "q", CONTEXT, None)
    assert json.loads(found.text) == [[0, "Ada"], [8, "Bob"]]
    assert found.mended == (MOVED, DROPPED)


def test_blanks_at_the_ends_of_spans_are_left_out_and_told():
    found = answer_of([[0, 4, "b"], [3, 7, "c"], [8, 11, "b"]], of("spans"), TEXT, None, None)
    assert json.loads(found.text) == [[0, 3, "b"], [4, 7, "c"], [8, 11, "b"]]
    assert found.mended == (TRIMMED, TRIMMED)


def test_offsets_in_utf_16_units_are_known_by_the_text_of_a_span():
    text = "😀 Ada 𠮷Bob😀"

    def read(*spans: tuple[int, int, str]) -> tuple[list, tuple[str, ...]]:
        value = [{"start": a, "end": b, "text": t, "labels": ["x"]} for a, b, t in spans]
        found = answer_of(value, of("spans"), text, None, None)
        return json.loads(found.text), found.mended

    assert read((3, 6, "Ada"), (9, 12, "Bob"), (12, 14, "😀")) == (
        [[2, 5, "x"], [7, 10, "x"], [10, 11, "x"]],
        (UNITS, UNITS, UNITS),
    )
    assert read((2, 5, "Ada")) == ([[2, 5, "x"]], ())
    with pytest.raises(UnusableError, match="a span whose text is not at its offset"):
        read((4, 7, "Ada"))
    with pytest.raises(UnusableError, match="a span outside the text"):
        read((12, 15, "😀"))


def test_settings_say_how_a_value_is_read():
    assert answer([[0, 2, "b"]], of("spans", span_ends="inclusive")) == '[[0, 3, "b"]]'
    assert answer("a; b;", of("label_set", separator=";")) == '["a", "b"]'
    assert answer("", of("label_set", separator=";")) == "[]"
    names = of("label", label_names=["neg", "pos"])
    assert [answer(value, names) for value in (1, "0")] == ["pos", "neg"]
    assert answer("-1", of("label", label_names={"-1": "less", "1": "more"})) == "less"
    with pytest.raises(UnusableError, match="not among 'label_names'"):
        answer("2", names)


def test_references_are_cleaned_and_what_was_left_out_is_told():
    found = answer_of(["one\u200b", "two", "one", " "], of("text"), TEXT, None, None)
    assert found.text == '["one", "two"]'
    assert found.mended == (CLEANED, LEFT_OUT, LEFT_OUT)
    assert texts_in("text", found.text) == ("one", "two")
    assert texts_in("label_set", '["one"]') == ()
    assert answer("1", of("text", label_names=["no", "yes"])) == '["yes"]'
    with pytest.raises(UnusableError, match="not among 'label_names'"):
        answer("2", of("text", label_names=["no", "yes"]))


def test_words_with_tags_become_a_text_with_spans():
    text, found = tagged(["Ada", "met", "Bob"], ["B-p", "O", "B-p"], of("spans"))
    assert (text, found.text) == ("Ada met Bob", '[[0, 3, "p"], [8, 11, "p"]]')
    numbered = of("spans", label_names=["O", "B-p"])
    assert tagged(["Ada", "met", "Bob"], [1, 0, 1], numbered) == (text, found)
    for tokens, tags, reason in (
        (["a"], ["O", "O"], "not one tag per word"),
        (["a"], "O", "not one tag per word"),
        (["a", " "], ["O", "O"], "an empty word"),
        (["a", 1], ["O", "O"], "a word that is not text"),
        (["a"], [1], "a number in place of a tag, which 'label_names' could name"),
        (["a"], ["I-p"], "a tag that cannot follow the one before it (tag_scheme iob2)"),
    ):
        with pytest.raises(UnusableError) as caught:
            tagged(tokens, tags, of("spans"))
        assert caught.value.reason == reason


NOISE = st.text(st.sampled_from("ab \u200b\u00a0\n\r\te\u0301👩\u200d好\x1b[2J"), max_size=12)


@given(NOISE, st.text(st.sampled_from("xyz "), min_size=1, max_size=8), NOISE)
def test_a_span_that_cleaning_moves_still_holds_its_text_or_is_given_up(
    before: str, inner: str, after: str
):
    text = before + "|" + inner + "|" + after
    start, end = len(before), len(before) + len(inner) + 2
    cleaned = clean(text).text
    moved = after_cleaning("spans", json.dumps([[start, end, "t"]]), text, cleaned)
    if moved is None:
        assert "\x1b" in text
        return
    ((start, end, _),) = json.loads(moved)
    assert cleaned[start:end] == clean(f"|{inner}|").text
