"""Cleaning (fault S20)."""

from __future__ import annotations

import time
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from corpora.cleaning import clean, places_before
from models.served.words import word_spans

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "a \n\r\t\x0b\x0c\x1f\x00\x1b[2J\u202e\u200b\u200d\u2028\u0301é👩क्\u00ad天"
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


@given(st.text("a\u0315\u0300\u0f73\u0344\u2260\u0302\u05b0", max_size=30))
def test_a_long_run_of_marks_is_in_normal_form(text: str):
    long = "e" + text * 100
    assert clean(long).text == unicodedata.normalize("NFC", long)


def test_a_long_run_of_marks_takes_linear_time():
    start = time.monotonic()
    clean("a" + "\u0315\u0300" * 100_000)  # sorted by `normalize` itself, two minutes
    assert time.monotonic() - start < 10


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


def test_what_separates_words_becomes_a_blank():
    cleaned = clean("end of page\x0cnext page\x0bnext line\n\x0ca field\x1fanother")
    assert cleaned.text == "end of page next page next line\na field another"
    assert cleaned.removed == {}


def test_a_terminal_title_is_removed_and_one_that_never_ends_takes_no_text_with_it():
    assert clean("a \x1b]0;title\x07good \x1b]2;title\x1b\\text").text == "a good text"
    assert clean("\x1b]0;title\nthe rest\nof it").text == "0;title\nthe rest\nof it"


@given(TEXTS)
def test_a_part_of_the_cleaned_text_is_found_in_the_text_or_given_up(text: str):
    cleaned = clean(text).text
    words = word_spans(cleaned).tolist()
    for first, (start, _) in enumerate(words):
        for _, end in words[first : first + 3]:
            found = places_before(text, cleaned, [(start, end)])
            assert found is None or clean(text[slice(*found[0])]).text == cleaned[start:end]


def test_places_in_a_text_of_marks_and_blanks_are_told():
    text = "\ufeff a\tdo\u00adg\r\n\r\n\r\ncafe\u0301 \u200bis\u200b 👩\u200d👧,好"
    cleaned = clean(text).text
    assert cleaned == "a dog\n\ncafé is 👩\u200d👧,好"
    places = word_spans(cleaned).tolist()
    found = places_before(text, cleaned, places)
    assert found is not None
    assert [text[start:end] for start, end in found] == [
        *("a", "do\u00adg", "cafe\u0301", "is", "👩\u200d👧", ",", "好")
    ]
    assert places_before(text, "another", [(0, 7)]) is None
