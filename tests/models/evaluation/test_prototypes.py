"""Few-shot classification by prototypes, against plain means and distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fourstage.errors import ContractViolation
from models.evaluation.prototypes import (
    MOST_ROWS,
    Episode,
    Share,
    answered,
    counted_vectors,
    draw,
    drawn_rows,
    inner_products,
    nearest,
    rows_by_class,
    share,
)

CLASSES = 7
LABELS = [f"c{i % CLASSES}" for i in range(CLASSES * 9)]
NUMBERS = np.arange(len(LABELS)) % CLASSES


def _vectors(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(LABELS), 6)) + 40.0


def _share(vectors: Any, episodes: Sequence[Episode]) -> Share:
    return share(answered(inner_products(vectors), episodes))


def _episodes(ways: int, shots: int, count: int):
    classes = rows_by_class(LABELS, ways, shots)
    return [draw(classes, ways, shots, number) for number in range(count)]


@pytest.mark.parametrize(("ways", "shots"), [(2, 1), (5, 3), (7, 8)])
def test_the_nearest_mean_answers(ways: int, shots: int):
    vectors = _vectors()
    for episode in _episodes(ways, shots, 20):
        prototypes = [vectors[rows].mean(0) for rows in episode.support]
        expected = [
            int(np.argmin([np.linalg.norm(vectors[query] - each) for each in prototypes]))
            for query in episode.queries
        ]
        for each in (vectors, csr_matrix(vectors)):
            assert nearest(inner_products(each), episode).tolist() == expected


def test_an_episode_has_different_rows_of_different_classes_and_is_the_same_each_time():
    for number, episode in enumerate(_episodes(5, 3, 50)):
        drawn = NUMBERS[episode.queries]
        assert len(set(drawn)) == 5
        assert (NUMBERS[episode.support] == drawn[:, None]).all()
        rows = [*episode.support.ravel(), *episode.queries]
        assert len(set(rows)) == 5 * 4
        again = draw(rows_by_class(LABELS, 5, 3), 5, 3, number)
        np.testing.assert_array_equal(again.support, episode.support)
        np.testing.assert_array_equal(again.queries, episode.queries)
    queries = [tuple(episode.queries) for episode in _episodes(5, 3, 50)]
    assert len(set(queries)) == 50


def test_vectors_of_the_class_are_always_right_and_others_guess():
    episodes = _episodes(5, 1, 400)
    told = _share(np.eye(CLASSES)[NUMBERS], episodes)
    assert (told.accuracy, told.reach) == (1.0, 0.0)
    constant = _share(np.full((len(LABELS), 3), 0.3), episodes)
    assert constant.accuracy == pytest.approx(1 / 5, abs=1e-12)
    # Of classes that say nothing about the vectors: 400 × 5 answers, standard error .009.
    shuffled = np.random.default_rng(3).permutation(np.eye(CLASSES)[NUMBERS])
    assert _share(shuffled, episodes).accuracy == pytest.approx(1 / 5, abs=0.06)


def test_the_interval_is_that_of_a_mean_over_episodes():
    said = np.array([[0, 1], [0, 0], [1, 0], [0, 1]])  # accuracies 1, ½, 0, 1
    found = share(said)
    assert found.accuracy == 0.625
    assert found.reach == pytest.approx(1.96 * np.std([1, 0.5, 0, 1], ddof=1) / 2)


def test_rows_without_a_label_are_left_out_and_of_many_as_many_of_each_class():
    assert drawn_rows(["a", "", "b", "a"]).tolist() == [0, 2, 3]
    many = ["often"] * (2 * MOST_ROWS) + ["rare"] * 30
    found = [many[i] for i in drawn_rows(many)]
    assert (found.count("often"), found.count("rare")) == (MOST_ROWS // 2, 30)


def test_words_tell_classes():
    texts = [f"word{number} of text{i}" for i, number in enumerate(NUMBERS)]
    vectors = counted_vectors([texts], [texts], ())
    assert _share(vectors, _episodes(5, 5, 50)).accuracy > 0.9


def test_too_few_classes_and_rows_are_refused():
    with pytest.raises(ContractViolation, match="expected 8 classes or more for 8 ways, got 7"):
        rows_by_class(LABELS, 8, 1)
    with pytest.raises(ContractViolation, match=r"expected 10 rows or more .* got fewer of c0, c1"):
        rows_by_class(LABELS, 2, 9)
    with pytest.raises(ContractViolation, match="got fewer of rare;"):
        rows_by_class([*LABELS, "rare"], 2, 1)
