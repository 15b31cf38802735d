"""Comparing recipes over seeds and rows: a rigged contest comes out as it was rigged."""

from __future__ import annotations

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.evaluation.comparison import BETTER, UNCLEAR, WORSE, Contender, contest

NUM_LABELS = 5


def _labels(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.integers(NUM_LABELS, size=rows)


def _model(
    rng: np.random.Generator,
    labels: np.ndarray,
    ease: np.ndarray,
    accuracy: float,
    seeds: int = 3,
    seed_spread: float = 0.0,
) -> np.ndarray:
    """(seeds, rows) label ids; right with accuracy + ease of the row + luck of the seed."""
    found = []
    for _ in range(seeds):
        right = rng.random(len(labels)) < accuracy + ease + rng.normal(0, seed_spread)
        wrong = (labels + rng.integers(1, NUM_LABELS, size=len(labels))) % NUM_LABELS
        found.append(np.where(right, labels, wrong))
    return np.array(found)


def _trio(rng: np.random.Generator, rows: int = 1500) -> tuple[np.ndarray, list[Contender]]:
    """A reference, one that is truly better by 8 points, one that is exactly as good."""
    labels = _labels(rng, rows)
    ease = rng.normal(0, 0.15, rows)
    rivals = [("reference", 0.6), ("better", 0.68), ("equal", 0.6)]
    return labels, [
        Contender(name, _model(rng, labels, ease, accuracy, seed_spread=0.005))
        for name, accuracy in rivals
    ]


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1"])
def test_a_rigged_contest_is_labelled_as_it_was_rigged(metric: str) -> None:
    labels, contenders = _trio(np.random.default_rng(1))
    found = contest(labels, contenders, NUM_LABELS, metric=metric, resamples=500)
    said = {(d.candidate, d.reference): d.verdict for d in found.differences}
    assert said == {
        ("better", "reference"): BETTER,
        ("equal", "reference"): UNCLEAR,
        ("equal", "better"): WORSE,
    }
    better = next(d for d in found.differences if d.reference == "reference")
    assert 0 < better.low < better.difference < better.high
    assert better.difference >= better.smallest_detectable > better.standard_error


def test_equal_recipes_are_almost_never_told_apart() -> None:
    rng = np.random.default_rng(2)
    wrong = 0
    for draw in range(50):
        labels, (reference, _, equal) = _trio(rng, rows=300)
        found = contest(
            labels, [reference, equal], NUM_LABELS, metric="accuracy", resamples=100, seed=draw
        )
        wrong += found.differences[0].verdict != UNCLEAR
    assert wrong <= 2


@pytest.mark.parametrize("seed_spread", [0.0, 0.06])
def test_the_interval_holds_the_true_difference_as_often_as_it_says(seed_spread: float) -> None:
    rng = np.random.default_rng(3)
    true, hits, draws, rows = 0.1, 0, 120, 300
    for draw in range(draws):
        labels = _labels(rng, rows)
        ease = rng.uniform(-0.2, 0.2, rows)
        contenders = [
            Contender("worse", _model(rng, labels, ease, 0.5, 3, seed_spread)),
            Contender("better", _model(rng, labels, ease, 0.5 + true, 3, seed_spread)),
        ]
        found = contest(labels, contenders, NUM_LABELS, metric="accuracy", resamples=100, seed=draw)
        (difference,) = found.differences
        hits += difference.low <= true <= difference.high
    # 95 % with a standard error of 2 % over 120 draws; too wide is the lesser fault.
    assert 0.89 <= hits / draws <= 1.0


def test_the_smallest_detectable_difference_is_found_with_the_power_promised() -> None:
    rng = np.random.default_rng(4)
    rows, draws = 400, 100

    def difference(gap: float, draw: int) -> tuple[bool, float]:
        labels = _labels(rng, rows)
        none = np.zeros(rows)
        contenders = [
            Contender("one", _model(rng, labels, none, 0.5, 1), random=False),
            Contender("two", _model(rng, labels, none, 0.5 + gap, 1), random=False),
        ]
        found = contest(labels, contenders, NUM_LABELS, metric="accuracy", resamples=100, seed=draw)
        (it,) = found.differences
        return it.low > 0, it.smallest_detectable

    smallest = float(np.mean([difference(0.0, i)[1] for i in range(20)]))
    power = np.mean([difference(smallest, i)[0] for i in range(draws)])
    assert 0.66 <= power <= 0.93


def test_few_seeds_that_disagree_make_the_interval_wide() -> None:
    rng = np.random.default_rng(5)
    labels = _labels(rng, 2000)
    none = np.zeros(2000)
    rival = Contender("rival", _model(rng, labels, none, 0.55))

    def width(*accuracies: float) -> float:
        rows = [_model(rng, labels, none, accuracy, 1)[0] for accuracy in accuracies]
        pair = [rival, Contender("ours", np.array(rows))]
        (it,) = contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=300).differences
        return it.high - it.low

    assert width(0.5, 0.6, 0.7) > 4 * width(0.6, 0.6, 0.6)


def test_rows_of_one_text_stand_and_fall_together() -> None:
    rng = np.random.default_rng(6)
    texts = np.repeat(np.arange(100), 10)
    labels = _labels(rng, 1000)
    right = np.repeat(rng.random(100) < 0.6, 10)
    ours = np.where(right, labels, (labels + 1) % NUM_LABELS)[None]
    theirs = np.where(np.repeat(rng.random(100) < 0.6, 10), labels, (labels + 1) % NUM_LABELS)[None]
    pair = [Contender("theirs", theirs, random=False), Contender("ours", ours, random=False)]
    alone = contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=400)
    together = contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=400, groups=texts)
    assert (alone.groups, together.groups) == (1000, 100)
    ratio = together.differences[0].standard_error / alone.differences[0].standard_error
    assert ratio == pytest.approx(10**0.5, rel=0.2)


def test_one_seed_is_said_to_tell_nothing_of_seeds() -> None:
    rng = np.random.default_rng(7)
    labels = _labels(rng, 50)
    none = np.zeros(50)
    contenders = [
        Contender("fixed", _model(rng, labels, none, 0.5, 1), random=False),
        Contender("once", _model(rng, labels, none, 0.5, 1)),
        Contender("twice", _model(rng, labels, none, 0.5, 2)),
    ]
    found = contest(labels, contenders, NUM_LABELS, metric="accuracy", resamples=50)
    assert found.one_seed == ("once",)
    assert [score.deviation is None for score in found.scores] == [True, True, False]


def test_the_same_predictions_twice_are_not_distinguishable() -> None:
    rng = np.random.default_rng(8)
    labels = _labels(rng, 200)
    said = _model(rng, labels, np.zeros(200), 0.6)
    pair = [Contender(name, said[:1], random=False) for name in ("one", "other")]
    (it,) = contest(labels, pair, NUM_LABELS, metric="macro_f1", resamples=50).differences
    assert (it.difference, it.standard_error, it.verdict) == (0.0, 0.0, UNCLEAR)


def test_the_same_contest_gives_the_same_numbers() -> None:
    labels, contenders = _trio(np.random.default_rng(9), rows=200)
    one, other = (
        contest(labels, contenders, NUM_LABELS, metric="macro_f1", resamples=50) for _ in range(2)
    )
    assert one == other


def test_predictions_for_other_rows_are_refused() -> None:
    labels = np.zeros(4, int)
    with pytest.raises(ContractViolation, match="ours for 4 rows, got shape"):
        contest(labels, [Contender("ours", np.zeros((2, 3), int))], 2, metric="accuracy")
    with pytest.raises(ContractViolation, match="no rows"):
        contest(labels[:0], [Contender("ours", np.zeros((1, 0), int))], 2, metric="accuracy")
