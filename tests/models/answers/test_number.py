"""Correlations against SciPy, also of resampled rows, and what has none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from fourstage.errors import ContractViolation
from models.answers.number import Number, numbers_of
from models.evaluation.resampling import resampled_scores, scores

NUMBER = Number()
BOTH = list(NUMBER.metrics)


def written(numbers: np.ndarray) -> list[str]:
    return [json.dumps(float(number)) for number in numbers]


def a_set(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Similarities in fifths, which tie often, and predictions of them."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 26, rows) / 5
    return true, np.round(true + rng.normal(size=rows), 2) ** 3


def test_correlations_equal_scipy():
    true, said = a_set()
    found = scores(NUMBER, written(true), written(said), BOTH)
    assert found["pearson"] == pytest.approx(stats.pearsonr(true, said)[0])
    assert found["spearman"] == pytest.approx(stats.spearmanr(true, said)[0])
    assert found["pearson"] != pytest.approx(found["spearman"], abs=0.01)


def test_a_resample_has_its_own_correlation_and_keeps_the_ranks_of_the_whole():
    true, said = a_set(40)
    draws = np.random.default_rng([3, 40, 5])
    picks = [draws.integers(40, size=40) for _ in range(5)]
    ranked = stats.rankdata(true), stats.rankdata(said)
    for metric, (one, other) in (("pearson", (true, said)), ("spearman", ranked)):
        (found,) = resampled_scores(
            NUMBER, written(true), [written(said)], metric, resamples=5, seed=3
        )
        assert found == pytest.approx([stats.pearsonr(one[p], other[p])[0] for p in picks])


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e300])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_constant_correlates_with_nothing(constant, swapped):
    columns = [["1.0", "2.5", "4.0"], written(np.full(3, constant))]
    one, other = reversed(columns) if swapped else columns
    assert scores(NUMBER, one, other, BOTH) == {"pearson": 0.0, "spearman": 0.0}


def test_resamples_of_one_row_only_have_no_correlation_and_no_warning():
    (found,) = resampled_scores(NUMBER, ["0.1", "0.7"], [["0.3", "0.4"]], "pearson", resamples=50)
    assert set(np.round(found, 12)) == {0.0, 1.0}


def test_large_numbers_that_differ_little_and_tiny_ones_correlate_as_others_do():
    true, said = a_set()
    for factor, shift in ((1.0, 1e9), (1e-160, 0.0), (1e150, 0.0)):
        found = scores(NUMBER, written(true * factor + shift), written(said), BOTH)
        assert found["pearson"] == pytest.approx(stats.pearsonr(true, said)[0], rel=1e-6)
        assert found["spearman"] == pytest.approx(stats.spearmanr(true, said)[0])


def test_no_rows_give_numbers_and_no_warning():
    assert scores(NUMBER, [], [], BOTH) == {"pearson": 0.0, "spearman": 0.0}


def test_what_is_no_finite_number_is_nan():
    texts = ["5", "5.000", "-1e3", "", "nan", "inf", "1e999", "five", None]
    assert numbers_of(texts)[:3].tolist() == [5.0, 5.0, -1000.0]
    assert np.isnan(numbers_of(texts)[3:]).all()


def test_rows_without_a_number_cannot_be_scored_and_are_not_quoted():
    with pytest.raises(ContractViolation, match="for 2, first for row 2") as refused:
        scores(NUMBER, ["1.0", "secret", ""], ["1.0", "2.0", "3.0"], BOTH)
    assert "secret" not in str(refused.value)
