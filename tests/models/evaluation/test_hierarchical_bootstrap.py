"""The hierarchical bootstrap against all resamples of a tiny case, written out."""

from __future__ import annotations

from itertools import product
from math import log, sqrt

import numpy as np
import pytest

from models.answers.label import Label
from models.evaluation.hierarchical_bootstrap import drawn_pretrainings, resampled_means
from models.evaluation.resampling import resampled_scores

LABELS = ["x", "y", "x"]
RIGHT = {  # of two contenders, by pre-training and fine-tuning: which of three rows are right
    "ours": [[(1, 1, 0), (1, 0, 1)], [(0, 1, 0)]],
    "theirs": [[(0, 1, 1)], [(1, 0, 0), (0, 0, 1)]],
}
RESAMPLES = 40_000
# Dvoretzky, Kiefer and Wolfowitz with Massart's constant: an empirical distribution is farther from
# the true one only once in a million.
FARTHEST = sqrt(log(2e6) / (2 * RESAMPLES))


def every_difference(paired: bool) -> np.ndarray:
    """(resamples, 2) the difference of the means in every resample, and its weight."""
    places = [
        (rows, ours, ours if paired else theirs)
        for rows in product(range(3), repeat=3)
        for ours in product(range(2), repeat=2)
        for theirs in (product(range(2), repeat=2) if not paired else [ours])
    ]
    every: list[tuple[float, float]] = []
    for rows, ours, theirs in places:
        means = []
        for name, starts in (("ours", ours), ("theirs", theirs)):
            draws = [
                list(product(range(len(of)), repeat=len(of)))
                for of in (RIGHT[name][start] for start in starts)
            ]
            means.append(
                [
                    np.mean(
                        [
                            np.mean([np.mean([of[k][r] for r in rows]) for k in picked])
                            for of, picked in zip(
                                (RIGHT[name][s] for s in starts), choice, strict=True
                            )
                        ]
                    )
                    for choice in product(*draws)
                ]
            )
        weight = 1 / (len(means[0]) * len(means[1]))
        every += [(float(a - b), weight) for a in means[0] for b in means[1]]
    return np.array(every)


@pytest.mark.parametrize("paired", [True, False])
def test_resamples_have_the_distribution_of_all_resamples_written_out(paired: bool) -> None:
    runs = [run for name in RIGHT for of in RIGHT[name] for run in of]
    said = [
        [label if right else "z" for label, right in zip(LABELS, run, strict=True)] for run in runs
    ]
    drawn = iter(resampled_scores(Label(), LABELS, said, "accuracy", resamples=RESAMPLES, seed=3))
    within = {name: [np.array([next(drawn) for _ in of]) for of in RIGHT[name]] for name in RIGHT}
    rng = np.random.default_rng(5)
    ours = drawn_pretrainings(2, RESAMPLES, rng)
    theirs = ours if paired else drawn_pretrainings(2, RESAMPLES, rng)
    found = resampled_means(within["ours"], ours, rng) - resampled_means(
        within["theirs"], theirs, rng
    )
    every = every_difference(paired)
    for value in np.unique(every[:, 0].round(9)):
        true = every[every[:, 0] < value + 1e-6, 1].sum() / every[:, 1].sum()
        assert abs((found < value + 1e-6).mean() - true) < FARTHEST


def test_one_fine_tuning_of_each_pretraining_is_a_bootstrap_of_pretrainings() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((3, 50))
    chosen = drawn_pretrainings(3, 50, rng)
    found = resampled_means([row[None] for row in scores], chosen, rng)
    expected = [scores[chosen[b], b].mean() for b in range(50)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
