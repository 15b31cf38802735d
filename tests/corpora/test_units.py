"""Words, phrases and entities of twelve tokens, in English and Chinese, by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import models.features
from corpora import units
from corpora.gazetteer import Gazetteer
from corpora.words import segmenter_settings, word_numbers


def laid_out(tokens: list[str]) -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """Text, basic starts and places of tokens; ``##`` goes on a word, ``_`` stands for a blank."""
    text, basic, starts, ends = "", [], [], []
    for token in tokens:
        text += " " * token.startswith("_")
        starts.append(len(text))
        basic.append(not token.startswith("##"))
        text += token.removeprefix("_").removeprefix("##")
        ends.append(len(text))
    return text, np.array(basic), np.array(starts), np.array(ends)


ENGLISH = "un ##believ ##able _news _from _new _york _city _to ##day _in ##deed".split()
CHINESE = list("他在北京大学学习中国文学")


def test_both_rooms_mean_the_same_numbers():
    ours = (units.WORD, units.PHRASE, units.ENTITY)
    assert ours == (models.features.WORD, models.features.PHRASE, models.features.ENTITY)
    case = (models.features.CASED, models.features.CAPITALISED)
    assert (units.CASED, units.CAPITALISED) == case


def test_english_by_hand():
    text, basic, starts, ends = laid_out(ENGLISH)
    names = [("new york", "entity"), ("new york city", "phrase"), ("news from", "phrase")]
    names += [("believable", "entity"), ("in", "phrase"), ("city to", "phrase")]
    found = units.unit_starts(basic, basic, starts, ends, Gazetteer(names).matches(text))
    assert (found & units.WORD > 0).tolist() == basic.tolist()
    #                                   un      news from new york city to     in
    assert (found & units.PHRASE > 0).astype(int).tolist() == [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0]
    # "new york" is the entity; "news from" stays a phrase, "new york city" would cross it, and
    # "believable" and "in" are parts of words.
    assert (found & units.ENTITY > 0).astype(int).tolist() == [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0]
    assert units.covered(found, units.PHRASE) == 5  # news from, new york city
    assert units.covered(found, units.ENTITY) == 4  # news from, new york


def test_chinese_by_hand():
    text, basic, starts, ends = laid_out(CHINESE)
    #        他 在  北京    大学    学习    中国    文学
    number = np.array([0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6])
    words = units.word_starts(basic, starts, number)
    assert words.astype(int).tolist() == [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    names = Gazetteer([("北京大学", "entity"), ("中国文学", "phrase"), ("大学", "entity")])
    found = units.unit_starts(basic, words, starts, ends, names.matches(text))
    assert (found & units.WORD > 0).tolist() == words.tolist()
    assert (found & units.PHRASE > 0).astype(int).tolist() == [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0]
    assert (found & units.ENTITY > 0).astype(int).tolist() == [1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0]


def test_case_by_hand():
    text = "Unbelievable news from New York 2 days ago, \u01c5ep 我"
    starts = np.array([0, 2, 8, 13, 18, 23, 27, 32, 34, 39, 42, 44, 48])
    basic = np.array([1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], bool)
    first = "".join(text[place] for place in starts)
    assert first == "Ubanf" + "NY2da,\u01c5我"
    found = units.case_starts(basic, starts, text)
    assert (found & units.CASED > 0).astype(int).tolist() == [1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0]
    capital = (found & units.CAPITALISED > 0).astype(int).tolist()
    assert capital == [1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0]


def test_a_name_may_cut_a_segmented_word():
    text, basic, starts, ends = laid_out(CHINESE)
    words = units.word_starts(basic, starts, np.array([0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4]))
    found = units.unit_starts(
        basic, words, starts, ends, Gazetteer([("在北京", "entity")]).matches(text)
    )
    #                                                          他|在北京|大学|学习|中国|文学
    assert (found & units.ENTITY > 0).astype(int).tolist() == [1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_rjieba_cuts_words_and_says_by_which_dictionary():
    (number,) = word_numbers(["他来到北京清华大学。 A new day"], "rjieba")
    text, cuts = "他来到北京清华大学。 A new day", np.flatnonzero(np.diff(number)) + 1
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert pieces == ["他", "来到", "北京", "清华大学", "。", " ", "A", " ", "new", " ", "day"]
    settings = segmenter_settings("rjieba")
    assert settings["name"] == "rjieba"
    assert len(settings["dictionary"]) == 64
    assert settings == segmenter_settings("rjieba")


@given(st.lists(st.text("他在北京大学习aB1 .\t😀é\U00020000"), max_size=4))
def test_words_are_the_text_whatever_is_in_it(texts: list[str]):
    for text, number in zip(texts, word_numbers(texts, "rjieba"), strict=True):
        assert len(number) == len(text)
        assert (np.diff(number) >= 0).all()
