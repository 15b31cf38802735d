"""The blend of two models: against brute force, and how little a few rows say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from models.blend import DEVIATION, EQUAL, LARGEST, fitted


def rows(number: int, seed: int = 0, sure: float = 1.0) -> tuple[np.ndarray, ...]:
    """Scores of two models with errors of their own, the first `sure` times too sure; labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, number)
    right = 4 * np.eye(3)[labels] - 2
    first, second = (right + rng.normal(0, 1.5, right.shape) for _ in range(2))
    return sure * first, second, labels


def brute_force(network, counted, nats) -> tuple[float, float]:
    """The best pair of factors of a fine grid."""
    grid = np.arange(0, 2, 0.01)

    def loss(a: float, b: float) -> float:
        away = ((a - EQUAL[0]) ** 2 + (b - EQUAL[1]) ** 2) / DEVIATION**2
        return nats(a * network + b * counted) + away / 2

    return min(((a, b) for a in grid for b in grid), key=lambda pair: loss(*pair))


def test_of_labels_it_is_the_best_of_a_grid():
    network, counted, labels = rows(20, sure=3)
    own = np.arange(20)
    best = brute_force(network, counted, lambda s: -log_softmax(s, axis=1)[own, labels].sum())
    assert fitted(network, counted, labels) == pytest.approx(best, abs=0.006)


def test_of_sets_it_is_the_best_of_a_grid():
    network, counted, labels = rows(20, seed=1)
    sets = np.eye(3, dtype=np.int32)[labels]
    sets[0] = 1  # a row with all labels
    best = brute_force(network, counted, lambda s: -np.log(expit((2 * sets - 1) * s)).sum())
    assert fitted(network, counted, sets) == pytest.approx(best, abs=0.006)


def test_of_numbers_it_is_the_best_of_a_grid_and_rows_without_one_say_nothing():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=30)
    network, counted = (numbers + rng.normal(0, 0.5, (2, 30)))[..., None]
    numbers[::3] = np.nan
    known = np.isfinite(numbers)
    best = brute_force(
        network[known], counted[known], lambda s: np.square(s[:, 0] - numbers[known]).sum() / 2
    )
    assert fitted(network, counted, numbers) == pytest.approx(best, abs=0.006)


def test_one_wrong_number_changes_little():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=200)
    network, counted = (numbers + rng.normal(0, 0.5, (2, 200)))[..., None]
    clean = fitted(network, counted, numbers)
    for wrong in (1e4, -1e4):
        said = np.array([wrong, *numbers[1:]])
        assert fitted(network, counted, said) == pytest.approx(clean, abs=0.05)


@pytest.mark.parametrize("of_sets", [False, True])
def test_a_model_that_knows_nothing_counts_for_nothing(of_sets):
    network, counted, labels = rows(3000)
    noise = np.random.default_rng(1).normal(0, 2, network.shape)
    right = np.eye(3, dtype=np.int32)[labels] if of_sets else labels
    factors = fitted(noise, counted, right)
    assert factors[0] < 0.05 < 0.5 < factors[1]


def test_a_model_that_is_too_sure_counts_less():
    sure, modest = fitted(*rows(3000, sure=4)), fitted(*rows(3000, sure=1))
    assert sure == pytest.approx([modest[0] / 4, modest[1]], rel=0.1)


def test_few_rows_say_little_and_none_nothing():
    network, counted, labels = rows(3000, sure=0.2)
    all_rows = fitted(network, counted, labels)
    few = fitted(network[:3], counted[:3], labels[:3])
    assert np.linalg.norm(few - EQUAL) < 0.5 * np.linalg.norm(all_rows - EQUAL)
    assert fitted(network[:0], counted[:0], labels[:0]).tolist() == list(EQUAL)
    unknown = np.where(np.arange(3000) < 3, labels, -1)
    assert fitted(network, counted, unknown) == pytest.approx(few, abs=1e-6)


def test_factors_are_not_negative_and_not_huge():
    labels = rows(3000)[-1]
    right = np.eye(3)[labels]
    assert fitted(-right, 0.5 * right, labels) == pytest.approx([0, LARGEST], abs=1e-6)
