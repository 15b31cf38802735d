"""Words that are nearest to a word, and 3CosAdd, against vectors whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from models.vectors.lookup import WordTable, nearest

# Royal, female, fruit. Row 0 is no word, row 6 the vector of a word of no vocabulary.
VECTORS = np.array(
    [
        [9.0, 9.0, 9.0],
        [2.0, 0.0, 0.0],
        [1.0, 1.0, 0.0],
        [0.1, 0.0, 0.1],
        [0.1, 1.0, 0.1],
        [0.0, 0.0, 1.0],
        [3.0, 3.0, 0.0],
    ]
)
IDS = {"king": 1, "queen": 2, "man": 3, "woman": 4, "apple": 5}
TABLE = WordTable(IDS, VECTORS, {"queens": 6})


def test_neighbours_come_by_cosine_without_the_word_itself() -> None:
    found, missing = nearest(TABLE, ["King"], 3)
    assert missing == []
    assert [word for word, _ in found] == ["queen", "man", "woman"]
    assert [cosine for _, cosine in found] == pytest.approx([0.5**0.5, 0.5**0.5, 0.1 / 1.02**0.5])
    assert [word for word, _ in nearest(TABLE, ["king"], 99)[0]][-1] == "apple"


def test_a_word_of_no_vocabulary_is_asked_about_and_answers_nothing() -> None:
    found, _ = nearest(TABLE, ["queens"], 5)
    assert found[0] == ("queen", pytest.approx(1.0))
    assert {word for word, _ in found} == IDS.keys()


def test_an_analogy_adds_vectors_of_length_1_and_leaves_its_words_out() -> None:
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    for words in (["man", "king", "woman"], ["king", "queens", "man"]):
        a, b, c = (unit[TABLE.row(word)] for word in words)
        query = b - a + c
        cosines = {word: unit[row] @ query / np.linalg.norm(query) for word, row in IDS.items()}
        rest = sorted(cosines.keys() - set(words), key=lambda word: -cosines[word])
        found, _ = nearest(TABLE, words, 9)
        assert [word for word, _ in found] == rest
        assert [cosine for _, cosine in found] == pytest.approx([cosines[w] for w in rest])
    assert nearest(TABLE, ["man", "king", "woman"], 1)[0][0][0] == "queen"


def test_words_without_a_vector_are_told() -> None:
    assert nearest(TABLE, ["man", "kong", "wuman"], 3) == ([], ["kong", "wuman"])
