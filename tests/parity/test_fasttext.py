"""Hashes, n-grams and vectors of fastText as gensim has them, of seen and of unseen words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.families.fasttext import FastText
from models.vectors.subwords import Subwords, SubwordTable, ngram_hash, ngram_hashes, subwords_of

GOLDEN = np.load(Path(__file__).with_name("fasttext") / "numbers.npz")
SHORTEST, LONGEST, BUCKETS = map(int, GOLDEN["sizes"])
WORDS = [str(word) for word in GOLDEN["words"]]
SEEN = len(GOLDEN["own_rows"])


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    """Which rows a word has, by the family's arguments."""
    sizes = {"shortest_ngram": SHORTEST, "longest_ngram": LONGEST, "buckets": BUCKETS}
    made = subwords_of(FastText.config_class(hidden_dim=5, **sizes), SEEN)
    assert made is not None
    return made


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.concatenate([GOLDEN["own_rows"], GOLDEN["bucket_rows"]])


def test_words_of_other_alphabets_are_among_them() -> None:
    assert (SEEN, len(WORDS)) == (18, 29)
    assert {"where", "苹果", "苹果树", "there", "naïveté", "हिन्दी", "😀ok"} <= set(WORDS)


def test_ngrams_and_hashes_are_gensims() -> None:
    ends = np.cumsum(GOLDEN["number"])
    for word, theirs in zip(WORDS, np.split(GOLDEN["hashes"], ends[:-1]), strict=True):
        assert ngram_hashes(word, SHORTEST, LONGEST) == theirs.tolist(), word
    found = [ngram_hash(str(ngram)) for ngram in GOLDEN["ngrams"]]
    assert found == GOLDEN["hashes"].tolist()


def test_vectors_of_seen_words_are_gensims(subwords: Subwords, rows: np.ndarray) -> None:
    table = SubwordTable(rows, subwords.members(WORDS[:SEEN]))
    found = table.vectors(np.arange(SEEN))
    np.testing.assert_allclose(found, GOLDEN["vectors"][:SEEN], rtol=0, atol=1e-7)


def test_vectors_of_unseen_words_are_gensims(subwords: Subwords, rows: np.ndarray) -> None:
    for word, vector in zip(WORDS[SEEN:], GOLDEN["vectors"][SEEN:], strict=True):
        found = subwords.unseen(word, rows)
        np.testing.assert_allclose(found, vector, rtol=0, atol=1e-7, err_msg=word)
