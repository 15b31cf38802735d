"""Senses told apart by vectors, against cosines pair by pair; words found in sentences."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from models.evaluation.marked_words import word_in
from models.evaluation.plane import plane
from models.evaluation.polysemy import told_apart

SENSES = ["fruit", "fruit", "company", "company", "company"]


def test_cosines_and_nearest_are_those_of_all_pairs():
    vectors = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
    found = told_apart("2", vectors, SENSES)

    def cosine(i: int, j: int) -> float:
        a, b = vectors[i].astype(float), vectors[j].astype(float)
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    pairs = list(combinations(range(5), 2))
    for value, alike in ((found.within, True), (found.between, False)):
        own = [cosine(i, j) for i, j in pairs if (SENSES[i] == SENSES[j]) is alike]
        assert value == pytest.approx(np.mean(own), abs=2e-6)
    nearest = [max((j for j in range(5) if j != i), key=lambda j: cosine(i, j)) for i in range(5)]
    assert found.nearest == nearest
    assert found.same_sense == sum(SENSES[i] == SENSES[j] for i, j in enumerate(nearest))


def test_vectors_that_are_all_the_same_tell_no_sense():
    found = told_apart("output", np.tile([0.3, 0.4, 0.5], (5, 1)), SENSES)
    assert (found.within, found.between, found.same_sense) == (1.0, 1.0, 0)


def test_the_plane_keeps_most_of_the_distances_and_is_the_same_each_time():
    vectors = np.random.default_rng(0).normal(size=(6, 5)) * [9, 4, 0.1, 0.1, 0.1]
    points = plane(vectors)
    centred = vectors - vectors.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(points), np.abs(left[:, :2] * values[:2]), atol=1e-9)
    np.testing.assert_array_equal(points, plane(vectors))
    assert plane(vectors[:, :1])[:, 1].tolist() == [0.0] * 6


@pytest.mark.parametrize(
    ("text", "word", "place"),
    [
        ("The player will play.", "play", (16, 20)),
        ("Play it", "play", (0, 4)),
        ("players", "play", None),
        ("他吃苹果。", "苹果", (2, 4)),
        ("我用Apple的电脑", "apple", (2, 7)),
        ("C++ and C", "c++", (0, 3)),
    ],
)
def test_a_word_is_found_as_a_whole_one(text, word, place):
    found = word_in(text, word)
    assert (found and (found.start, found.end)) == place
