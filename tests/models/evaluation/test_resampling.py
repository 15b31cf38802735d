"""Rows drawn anew: against one draw after the other, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.answers.label import Label
from models.evaluation.resampling import ratio_error, resampled_scores, scores

LABEL = Label()


@pytest.mark.parametrize("metric", Label.metrics)
def test_scores_are_those_of_the_rows_drawn_one_after_the_other(metric: str) -> None:
    rng = np.random.default_rng(0)
    labels, texts = rng.integers(0, 4, 60), rng.integers(0, 9, 60)
    said = [rng.integers(0, 4, 60) for _ in range(2)]
    found = resampled_scores(LABEL, labels, said, metric, groups=texts, resamples=20, seed=5)
    again = np.random.default_rng([5, 60, 20])
    names = np.unique(texts)
    for draw in range(20):
        drawn = names[again.integers(len(names), size=len(names))]
        rows = np.concatenate([np.flatnonzero(texts == name) for name in drawn])
        by_hand = [scores(LABEL, labels[rows], one[rows], [metric])[metric] for one in said]
        assert found[:, draw] == pytest.approx(by_hand)


def test_the_spread_of_a_mean_is_that_of_the_textbook_and_grows_with_rows_of_one_text() -> None:
    rng = np.random.default_rng(1)
    labels = np.zeros(1000, int)
    right = np.repeat(rng.random(100) < 0.7, 10)
    said = [np.where(right, 0, 1)]

    def error(groups: np.ndarray | None) -> float:
        return float(resampled_scores(LABEL, labels, said, "accuracy", groups=groups).std())

    share = right.mean()
    assert error(None) == pytest.approx((share * (1 - share) / 1000) ** 0.5, rel=0.1)
    texts = np.repeat(np.arange(100), 10)
    assert error(texts) == pytest.approx((share * (1 - share) / 100) ** 0.5, rel=0.1)


def test_the_error_of_a_ratio_is_how_much_it_varies_from_draw_to_draw():
    rng = np.random.default_rng(3)
    weights = rng.integers(50, 150, (2000, 40)).astype(float)
    sums = weights * (5 + rng.normal(0, 0.3, weights.shape))
    ratios = sums.sum(1) / weights.sum(1)
    errors = [ratio_error(*each) for each in zip(sums, weights, strict=True)]
    assert np.mean(errors) == pytest.approx(ratios.std(), rel=0.05)
