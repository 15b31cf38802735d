"""Words of a text, with their places in it as written."""

from __future__ import annotations

import pytest

from models.served.words import word_spans, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hi, Dr. O'Brien!", "Hi , Dr . O ' Brien !"),
        ("5.2 ±3°C a_b €5", "5 . 2 ±3°C a _ b €5"),
        ("浙商银行2008年A股", "浙 商 银 行 2008 年 A 股"),
        ("naïve café e\u0301t", "naïve café e\u0301t"),
        ("”——“ \U0001f600ok", "” — — “ \U0001f600ok"),
        (" \t\n", ""),
    ],
)
def test_words_are_runs_marks_and_characters(text, words):
    places = word_spans(text)
    assert [text[start:end] for start, end in places.tolist()] == words.split()
    assert places.shape == (len(words.split()), 2)


def test_with_the_blanks_before_them_they_are_the_whole_text():
    text = "  Two  words,\n浙 x"
    assert words_of(text) == ["  Two", "  words", ",", "\n浙", " x"]
    assert "".join(words_of(text)) == text
