"""Cleaning (fault S20)."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from corpora.cleaning import clean

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "a \n\r\t\x00\x1b[2J\u202e\u200b\u200d\u2028\u0301é👩क्\u00ad天"
)


@given(TEXTS)
def test_cleaning_twice_changes_nothing_more(text: str):
    once = clean(text).text
    assert clean(once).text == once


@given(TEXTS)
def test_what_is_left_is_normal_and_visible(text: str):
    left = clean(text).text
    assert unicodedata.is_normalized("NFC", left)
    assert not [c for c in left if unicodedata.category(c) == "Cc" and c != "\n"]
    assert not set(left) & set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\r"
    )
    assert "\n\n\n" not in left
    assert "  " not in left
    assert left == left.strip()


@given(st.text("abc xyz 今天é.", max_size=80))
def test_ordinary_characters_are_never_lost(text: str):
    cleaned = clean(text)
    assert cleaned.text.split() == unicodedata.normalize("NFC", text).split()
    assert cleaned.removed == {}


def test_removed_characters_are_counted_by_kind():
    cleaned = clean("do\x00se\u202e\u200b\x1b[2J of \x07it")
    assert cleaned.text == "dose of it"
    assert cleaned.removed == {"control": 2, "bidi": 1, "zero_width": 1, "escape": 4}


def test_joined_emoji_stay_joined_and_stray_joiners_go():
    family = "👩\u200d👩\u200d👧说𠮷野家"
    assert clean(family).text == family
    assert clean("wo\u200drd\u200d").text == "word"
    assert clean("می\u200cخواهم").text == "می\u200cخواهم"


def test_unicode_line_ends_become_line_ends():
    assert clean("one\u2028two\x85three\u2029four\r\nfive\rsix").text == (
        "one\ntwo\nthree\n\nfour\nfive\nsix"
    )
