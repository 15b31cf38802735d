"""Chosen words: neighbours by a search through all words."""

from __future__ import annotations

import numpy as np

from models.evaluation.plane import plane
from models.evaluation.word_map import word_map
from models.vectors.lookup import WordTable

WORDS = {f"w{i}": i + 2 for i in range(12)} | {"苹果": 14}


def test_neighbours_are_those_of_a_search_and_unknown_words_are_named():
    vectors = np.random.default_rng(1).normal(size=(15, 6)).astype(np.float32)
    found = word_map(["W3", "苹果", "none"], WordTable(WORDS, vectors, {}))
    assert (found.words, found.unknown) == (("W3", "苹果"), ("none",))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for word, row in (("W3", 5), ("苹果", 14)):
        near = {name: float(unit[i] @ unit[row]) for name, i in WORDS.items() if i != row}
        expected = sorted(near, key=lambda name: -near[name])[:5]
        assert [name for name, _ in found.nearest[word]] == expected
        np.testing.assert_allclose(
            [c for _, c in found.nearest[word]], [near[n] for n in expected], atol=1e-6
        )
    np.testing.assert_allclose(found.points, plane(unit[[5, 14]]), atol=1e-6)


def test_one_word_or_none_has_no_map():
    vectors = np.eye(15, dtype=np.float32)
    assert word_map(["w0"], WordTable(WORDS, vectors, {})).points.tolist() == [[0.0, 0.0]]
    assert word_map(["x"], WordTable(WORDS, vectors, {})).points.shape == (0, 2)
