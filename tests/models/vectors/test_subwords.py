"""fastText's hashes and n-grams by a hand-computed list; words as means of rows."""

from __future__ import annotations

import numpy as np
import pytest

from models.vectors.subwords import Subwords, SubwordTable, ngram_hash, ngram_hashes

# FNV-1a with signed bytes, computed apart from the code; for ASCII it is plain FNV-1a.
HASHES = {
    "<wh": 1048167652,
    "her": 4105473420,
    "<where>": 2319392596,
    "中": 3930512628,
    "<中": 3006752166,
    "文>": 3671895024,
    "é": 1023043777,
}


@pytest.mark.parametrize(("ngram", "value"), HASHES.items())
def test_hashes_are_those_of_the_original_tool(ngram, value) -> None:
    assert ngram_hash(ngram) == value


@pytest.mark.parametrize(
    ("word", "lengths", "ngrams"),
    [
        ("here", (3, 6), "<he <her <here <here> her here here> ere ere> re>"),
        ("中文", (3, 6), "<中文 <中文> 中文>"),
        ("中", (1, 3), "<中 <中> 中 中>"),
        ("ab", (2, 2), "<a ab b>"),
        ("where", (0, 0), ""),
    ],
)
def test_ngrams_are_of_characters_and_not_of_bytes(word, lengths, ngrams) -> None:
    assert ngram_hashes(word, *lengths) == [ngram_hash(ngram) for ngram in ngrams.split()]


def test_a_word_is_the_mean_of_its_row_and_its_ngrams_rows() -> None:
    made = Subwords(3, 3, 4, 50)
    words = [None, "where", "her"]
    rows = np.random.default_rng(0).normal(size=(53, 4)).astype(np.float32)
    table = SubwordTable(rows, made.members(words))
    found = table.vectors(np.array([[0, 1], [2, 1]]))
    assert np.array_equal(found[0, 0], rows[0])
    for word, vector in (("where", found[0, 1]), ("her", found[1, 0])):
        own = [words.index(word), *(3 + value % 50 for value in ngram_hashes(word, 3, 4))]
        assert np.abs(vector - rows[own].mean(axis=0)).max() < 1e-6
    unseen = made.unseen("there", rows)
    own = [3 + value % 50 for value in ngram_hashes("there", 3, 4)]
    assert np.abs(unseen - rows[own].mean(axis=0)).max() < 1e-6
    assert made.unseen("", rows) is None


def test_each_row_of_a_word_gets_the_whole_gradient() -> None:
    made = Subwords(2, 3, 3, 7)
    words = ["where", "there"]
    before = np.zeros((9, 2), np.float32)
    table = SubwordTable(before.copy(), made.members(words))
    gradients = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], np.float32)
    table.descend(np.array([0, 1, 0]), gradients, np.ones(3, np.float32), 0.1)
    expected = before.copy()
    for word, gradient in ((0, [2.0, 0.0]), (1, [0.0, 1.0])):
        for row in (word, *made.of(words[word])):
            expected[row] -= 0.1 * np.array(gradient, np.float32)
    assert np.abs(table.array - expected).max() < 1e-6
