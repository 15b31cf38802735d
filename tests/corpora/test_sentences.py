"""Sentences of English and Chinese."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.sentences import _CHINESE_ENDS, _ENDS, split_lines, split_sentences


@given(st.text() | st.text("aB1.!? \n\"')。！？…”今天", max_size=60), st.sampled_from(["en", "zh"]))
def test_only_blanks_are_lost(text: str, language: str):
    sentences = split_sentences(text, language)
    assert re.sub(r"\s", "", "".join(sentences)) == re.sub(r"\s", "", text)
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


@given(st.text("aB.!? \n\"')」”。！？…；今", max_size=30))
def test_marks_end_sentences_where_they_do_if_each_mark_is_tried(text: str):
    english = r"""[.!?]+["'”’)\]»]*(?=\s)"""
    chinese = r"(?:[。！？；]|…+|[!?]+(?=[^\x00-\x7f]|\s|$))[”’」』）)\"']*"
    for slow, quick in ((english, _ENDS), (chinese, _CHINESE_ENDS)):
        spans = [match.span() for match in quick.finditer(text)]
        assert spans == [match.span() for match in re.finditer(slow, text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It works.", "Does it?", "Yes!", "“It does.”", "(It did.)", "The end"],
        ["Dr. Smith et al. found that 3.5 mg of it (Fig. 2) works.", "See also Sec. 4."],
        ["J. R. Tolkien wrote it.", "He lived in the U.K. for years."],
        ["It costs $3.50 vs. 4.00, i.e. less, e.g. here.", "OK?"],
        ["We use x, y, etc. and more.", "We use x, y, etc.", "They do not."],
        ["The answer is no.", "We tried."],
        ["Wait... what?", "He said so..."],
        ["Results were clear (p < 0.05).", "In all, 23 % improved."],
        ["A heading without a stop", "A paragraph after it."],
    ],
)
def test_english_sentences(sentences: list[str]):
    joined = sentences[0]
    for one, other in pairwise(sentences):
        joined += (" " if one[-1] in ".?!”)" else "\n\n") + other
    assert split_sentences(joined, "en") == sentences


def test_chinese_sentences():
    text = "天气很好。“我们走吧！”他说：“去哪儿？”……我想了想；没有回答\n\n第二段。"
    assert split_sentences(text, "zh") == [
        "天气很好。",
        "“我们走吧！”",
        "他说：“去哪儿？”",
        "……",
        "我想了想；",
        "没有回答",
        "第二段。",
    ]


def test_lines_are_sentences_whatever_stands_in_them():
    text = "Is it? It is. And\n\n  more\n\n. \nend"
    assert split_lines(text) == ["Is it? It is. And", "more", ".", "end"]


def test_a_text_without_marks_is_one_sentence_and_long_ones_take_linear_time():
    assert len(split_sentences("天" * 100_000, "zh")) == 1
    start = time.monotonic()
    assert len(split_sentences("One more short sentence. " * 40_000, "en")) == 40_000
    assert len(split_sentences("x" * 2_000_000 + ". A b", "en")) == 2
    assert len(split_sentences("a." * 300_000, "en")) == 1
    for language in ("en", "zh"):
        assert len(split_sentences("!" * 200_000 + "x", language)) == 1
        assert len(split_sentences("?" + '"' * 200_000 + "x", language)) == 1
    assert time.monotonic() - start < 10
