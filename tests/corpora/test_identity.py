"""When two texts are the same."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from corpora.identity import (
    character_units,
    gram_hashes,
    is_unspaced,
    marked_form,
    normal_form,
    text_digest,
    text_key,
    word_units,
)


@given(st.text())
def test_the_normal_form_of_a_normal_form_is_itself(text: str):
    once = normal_form(text)
    assert normal_form(once) == once
    assert once == once.strip()
    assert "  " not in once


@given(st.text("aB1_ -.,\n\t", max_size=40))
def test_the_fast_way_of_ascii_agrees_with_the_general_one(text: str):
    # One letter beyond ASCII takes the other way.
    assert f"{normal_form(text)} é".split() == normal_form(f"{text} é").split()


def test_case_width_and_marks_make_no_difference_but_letters_do():
    assert normal_form("Ｆine, FILM!") == normal_form("fine film")
    assert normal_form("Straße") == normal_form("STRASSE")
    assert normal_form("fine film") != normal_form("fine films")


def test_texts_that_differ_only_in_markings_have_one_key():
    marks = ["<<", ">>"]
    for plain, marked in (("今天天气很好", "今天<<天气>>很好。"), ("unlike", "<<un>>like")):
        assert text_key(marked, marks) == text_key(plain, marks) == plain
    assert text_key("to get her") != text_key("together")
    assert text_key("***", marks) == "***"
    assert text_key("A << b", marks, normal_form("A << b", marks)) == "ab"


def test_symbols_are_words_and_other_marks_are_none():
    assert normal_form("Fine👍, really!") == normal_form("fine 👍 really") == "fine 👍 really"
    assert normal_form("ok 👍") != normal_form("ok 👎")
    assert normal_form("★★☆").split() == ["★", "★", "☆"]
    assert normal_form("“¿fine?” │ © • ™") == "fine tm"


def test_signs_that_are_vowels_or_tones_tell_texts_apart():
    for one, other in (
        ("मैं जाता हूँ।", "मैं जाती हूँ।"),
        ("ভাল", "ভুল"),
        ("ดี", "ดุ"),
        ("ကို", "ကု"),
        ("ຂ້າວ", "ຂາວ"),
    ):
        assert normal_form(one) != normal_form(other)
    assert normal_form("«किताब», अच्छी!") == "किताब अच्छी"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_digest_of_a_text_without_emoji_is_of_letters_and_digits(text: str):
    text = unicodedata.normalize("NFKC", text)
    text = re.sub(r"[\u2600-\u27bf\U0001f000-\U0001faff]", "", text)
    signs = {c for c in text if "\u0900" <= c < "\u1dc0" and unicodedata.category(c)[0] == "M"}
    text = "".join(c for c in text if c not in signs)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = " ".join(re.sub(r"(?:[^\w ]|_)+", " ", folded).split())
    assert text_digest(text, normal_form(text)) == text_digest(text, words)


def test_markings_are_ignored_in_one_form_and_count_in_the_other():
    marks = ["<<", ">>", "[[", "]]"]
    one = "<< Losartan >> blocks [[ AT1 ]]s"
    other = "[[ Losartan ]] blocks << AT1 >>s"
    assert normal_form(one, marks) == normal_form(other, marks)
    assert marked_form(one, marks) != marked_form(other, marks)


def test_scripts_without_blanks_are_known():
    assert is_unspaced(normal_form("今天天气很好 ok"))
    assert not is_unspaced(normal_form("The word 天 means sky in Chinese"))
    assert not is_unspaced("")


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 6))
def test_equal_runs_and_only_they_have_equal_hashes(values: list[int], length: int):
    units = word_units(" ".join(f"w{value}" for value in values))
    hashes = gram_hashes(units, length)
    runs = [tuple(values[i : i + length]) for i in range(len(values) - length + 1)]
    assert len(hashes) == max(0, len(runs))
    assert len(set(hashes.tolist())) == len(set(runs))


def test_characters_beyond_the_bmp_are_one_unit_each():
    assert len(character_units("𠮷野 家")) == 3
