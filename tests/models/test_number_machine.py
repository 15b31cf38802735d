"""The ridge regression of a wide part: penalty, rows without a number, texts it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge

from models import number_machine
from models.number_machine import PENALTIES, regressed


def problem(rows: int = 80, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 6))
    return features, features @ np.arange(6.0) + 2 + noise * rng.normal(size=rows)


@pytest.mark.parametrize(("noise", "penalty"), [(0.01, PENALTIES[0]), (100.0, PENALTIES[-1])])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_it_is_scikit_learns_with_the_penalty_that_foretells_best(noise, penalty, kind) -> None:
    features, numbers = problem(noise=noise)
    weights, bias, _ = regressed(kind(features), numbers, range(80))
    expected = Ridge(alpha=penalty).fit(features, numbers)
    assert weights == pytest.approx(expected.coef_, abs=1e-3)
    assert bias == pytest.approx(expected.intercept_, abs=1e-3)


def test_rows_without_a_number_are_foretold_but_not_learned_from() -> None:
    features, numbers = problem()
    numbers[::4] = np.nan
    known = np.isfinite(numbers)
    weights, bias, unseen = regressed(features, numbers, range(80))
    alone, same, _ = regressed(features[known], numbers[known], range(60))
    assert weights == pytest.approx(alone, abs=0.05)
    assert bias == pytest.approx(same, abs=0.05)
    right = features @ np.arange(6.0) + 2
    assert np.abs(unseen - right).max() < 0.5


def test_a_row_is_foretold_without_any_row_of_its_text(monkeypatch) -> None:
    monkeypatch.setattr(number_machine, "PENALTIES", (1.0,))
    features, numbers = problem()
    groups = [0, 0, *range(1, 79)]
    _, _, before = regressed(features, numbers, groups)
    numbers[1] += 1000
    _, _, after = regressed(features, numbers, groups)
    assert np.array_equal(before[:2], after[:2])
    assert np.abs(before[2:] - after[2:]).max() > 1


def test_of_one_text_nothing_is_held_out() -> None:
    features, numbers = problem(rows=4)
    weights, _, unseen = regressed(features, numbers, [0] * 4)
    assert np.isfinite(weights).all()
    assert not unseen.any()
