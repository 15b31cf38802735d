"""Comparing recipes over seeds and rows: a rigged contest comes out as it was rigged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fourstage.errors import ContractViolation
from models.answers.label import Label
from models.answers.text import Text, written
from models.evaluation.comparison import (
    BETTER,
    UNCLEAR,
    WORSE,
    AnsweredRows,
    Contender,
    Contest,
    Difference,
    contest,
)

LABEL = Label()
NUM_LABELS = 5


def _contender(name: str, said: np.ndarray, *starts: tuple[str, ...], **more: Any) -> Contender:
    """On one data set."""
    return Contender(name, [said], *starts, **more)


def _contest(
    labels: np.ndarray,
    contenders: list[Contender],
    num_labels: int,
    *,
    metric: str,
    groups: np.ndarray | None = None,
    **more: Any,
) -> Contest:
    """On one data set."""
    return contest([AnsweredRows(LABEL, labels, metric, groups)], contenders, **more)


def test_of_a_perplexity_the_lower_one_is_the_better():
    rng = np.random.default_rng(2)
    said = {
        name: [[written(None, (nats, 4, 3)) for nats in rng.normal(mean, 0.5, 200)] for _ in "abc"]
        for name, mean in (("low", 7.0), ("high", 8.0))
    }
    found = contest(
        [AnsweredRows(Text(), ['["a"]'] * 200, "perplexity")],
        [Contender(name, [runs]) for name, runs in said.items()],
        contrasts=[("low", "high"), ("high", "low")],
    )
    assert [difference.verdict for difference in found.differences] == [BETTER, WORSE]
    assert found.differences[0].difference < 0
    low, high = (score.mean for score in found.scores)
    assert (low, high) == pytest.approx((np.exp(7 / 4), np.exp(2)), rel=0.03)


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
        _contender(name, _model(rng, labels, ease, accuracy, seed_spread=0.005))
        for name, accuracy in rivals
    ]


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1"])
def test_a_rigged_contest_is_labelled_as_it_was_rigged(metric: str) -> None:
    labels, contenders = _trio(np.random.default_rng(1))
    found = _contest(labels, contenders, NUM_LABELS, metric=metric, resamples=500)
    said = {(d.candidate, d.reference): d.verdict for d in found.differences}
    assert said == {
        ("better", "reference"): BETTER,
        ("equal", "reference"): UNCLEAR,
        ("equal", "better"): WORSE,
    }
    better = next(d for d in found.differences if d.reference == "reference")
    assert 0 < better.low < better.difference < better.high
    assert better.p < 0.01


def test_of_three_rows_that_are_all_won_nothing_is_certain() -> None:
    labels = np.zeros(3, int)
    said = [_contender("right", labels[None]), _contender("wrong", labels[None] + 1)]
    (found,) = _contest(labels, said, NUM_LABELS, metric="accuracy", resamples=100).differences
    assert (abs(found.difference), found.verdict) == (1.0, UNCLEAR)
    assert found.p == 0.25  # three coins alike: the sign test's, two-sided


def _pair(
    rng: np.random.Generator, trainings: int, runs: int, gap: float, paired: bool, sets: int = 1
) -> tuple[list[AnsweredRows], list[Contender]]:
    """Two recipes `gap` apart: trainings that differ by chance, runs of each, rows of one text."""
    starts = rng.normal(0, 0.02, (2, trainings))
    names = [[f"{recipe if not paired else ''}{t}" for t in range(trainings)] for recipe in "ab"]
    data_sets, said = [], ([], [])
    for _ in range(sets):
        groups = np.repeat(np.arange(150), 2)
        labels = _labels(rng, len(groups))
        data_sets.append(AnsweredRows(LABEL, labels, "accuracy", groups))
        ease = rng.uniform(-0.2, 0.2, 150)[groups]
        for which, accuracy in enumerate((0.55, 0.55 + gap)):
            luck = starts[0] if paired else starts[which]
            # A row is hard for a recipe, not only for one training of it.
            taste = rng.normal(0, 0.1, 150)[groups]
            answers = [
                _model(rng, labels, ease + taste, accuracy + luck[t], 1, 0.01)[0]
                for t in range(trainings)
                for _ in range(runs)
            ]
            said[which].append(np.array(answers))
    return data_sets, [
        Contender("ab"[which], said[which], tuple(n for n in names[which] for _ in range(runs)))
        for which in range(2)
    ]


DRAWS: dict[str, Any] = {"draws": (1, 2, 3, 4)}

DESIGNS = {
    "three seeds": (3, 1, False, 1),
    "two pre-trainings of three fine-tunings": (2, 3, False, 1),
    "six shared starts": (6, 1, True, 1),
    "three pre-trainings on four data sets": (3, 1, False, 4),
}


@pytest.mark.parametrize(("trainings", "runs", "paired", "sets"), DESIGNS.values(), ids=DESIGNS)
def test_where_nothing_differs_at_most_one_comparison_in_twenty_finds_something(
    trainings: int, runs: int, paired: bool, sets: int
) -> None:
    rng = np.random.default_rng(2)
    wrong, draws = 0, 200
    for draw in range(draws):
        data_sets, pair = _pair(rng, trainings, runs, 0.0, paired, sets)
        (it,) = contest(data_sets, pair, resamples=100, seed=draw).differences
        wrong += it.verdict != UNCLEAR
        assert (it.verdict != UNCLEAR) == (not it.low <= 0 <= it.high)
    # 5 % of 200 are 10; a procedure of exactly that size exceeds 17 once in a hundred times.
    assert wrong <= 17


def test_where_nothing_but_the_draws_differs_one_comparison_in_twenty_finds_something() -> None:
    rng = np.random.default_rng(5)
    wrong, comparisons = 0, 200
    for comparison in range(comparisons):
        labels = _labels(rng, 300)
        draws, starts = rng.normal(0, 0.05, 6), rng.normal(0, 0.02, 3)
        said = [
            np.array(
                [
                    _model(rng, labels, np.zeros(300), 0.55 + draws[i] + luck[i], 1, 0.01)[0]
                    for i in range(6)
                ]
            )
            for luck in (np.repeat(starts, 2), np.zeros(6))
        ]
        pair = [
            _contender("read", said[0], tuple("uuvvww"), draws=tuple(range(6))),
            _contender("unread", said[1], draws=tuple(range(6))),
        ]
        (it,) = _contest(
            labels, pair, NUM_LABELS, metric="accuracy", resamples=100, seed=comparison
        ).differences
        wrong += it.verdict != UNCLEAR
    assert wrong <= 17  # as above


@pytest.mark.parametrize(
    ("trainings", "runs", "paired", "sets"),
    [(3, 1, False, 1), (6, 1, True, 1), (3, 1, False, 4)],
    ids=["three seeds", "six", "four data sets"],
)
def test_the_detectable_difference_is_found_with_the_power_promised(
    trainings: int, runs: int, paired: bool, sets: int
) -> None:
    rng = np.random.default_rng(4)

    def found(gap: float, draw: int):
        data_sets, pair = _pair(rng, trainings, runs, gap, paired, sets)
        contrasts = [("b", "a")]
        return contest(
            data_sets, pair[::-1], contrasts=contrasts, resamples=100, seed=draw
        ).differences[0]

    smallest = float(np.mean([found(0.0, i).smallest_detectable for i in range(40)]))
    power = np.mean([found(smallest, i).verdict == BETTER for i in range(100)])
    # 80 % with a standard error of 4 %, and a detectable difference that is itself estimated.
    assert 0.66 <= power <= 0.94


def test_over_several_data_sets_the_score_of_a_run_is_the_mean_of_their_own_metrics() -> None:
    rng = np.random.default_rng(15)
    many, few = _labels(rng, 400), _labels(rng, 30)
    said = [_model(rng, many, np.zeros(400), 0.6), _model(rng, few, np.zeros(30), 0.4)]
    data_sets = [AnsweredRows(LABEL, many, "accuracy"), AnsweredRows(LABEL, few, "macro_f1")]
    found = contest(data_sets, [Contender("ours", said)], resamples=50)
    alone = [
        contest([rows], [Contender("ours", [of])], resamples=50).scores[0]
        for rows, of in zip(data_sets, said, strict=True)
    ]
    (score,) = found.scores
    assert score.values == pytest.approx(np.mean([each.values for each in alone], axis=0))
    assert score.parts == pytest.approx([each.mean for each in alone])
    assert score.mean == pytest.approx(np.mean(score.parts))
    assert (found.rows, found.groups) == ((400, 30), (400, 30))


def test_texts_of_each_data_set_are_drawn_by_themselves() -> None:
    rng = np.random.default_rng(16)
    labels = _labels(rng, 600)
    said = _model(rng, labels, np.zeros(600), 0.6, 1)
    rows = AnsweredRows(LABEL, labels, "accuracy")

    def width(times: int) -> float:
        ours = Contender("ours", [said] * times, random=False)
        score = contest([rows] * times, [ours]).scores[0]
        return score.high - score.low

    # Four times as many rows: draws that went together would leave the width as it is.
    assert width(4) == pytest.approx(width(1) / 2, rel=0.1)


def test_fine_tunings_of_one_pretraining_do_not_count_as_independent() -> None:
    rng = np.random.default_rng(11)
    labels = _labels(rng, 400)
    none = np.zeros(400)
    rival = _contender("rival", _model(rng, labels, none, 0.6, 6), tuple("rsrsrs"))
    said = np.concatenate([_model(rng, labels, none, accuracy, 3) for accuracy in (0.55, 0.65)])

    def width(starts: tuple[str, ...]) -> float:
        pair = [rival, _contender("ours", said, starts)]
        (it,) = _contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=200).differences
        return it.high - it.low

    assert width(tuple("aaabbb")) > 2 * width(tuple("abcdef"))


def test_runs_of_a_single_pretraining_count_themselves() -> None:
    rng = np.random.default_rng(12)
    labels = _labels(rng, 200)
    said = _model(rng, labels, np.zeros(200), 0.6)
    one, other = (
        _contest(labels, [_contender("a", said, starts)], NUM_LABELS, metric="accuracy").scores[0]
        for starts in (tuple("sss"), ())
    )
    assert one == other
    assert len(one.trainings) == 3


def test_recipes_that_share_their_starts_are_compared_start_by_start() -> None:
    rng = np.random.default_rng(13)
    labels = _labels(rng, 3000)
    none = np.zeros(3000)
    luck = (0.4, 0.5, 0.6, 0.7)  # of the shared start: far more than the recipes differ by
    said = [
        np.array([_model(rng, labels, none, accuracy + gain, 1)[0] for accuracy in luck])
        for gain in (0.0, 0.06)
    ]

    def verdict(starts: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
        pair = [_contender(*each) for each in zip(("a", "b"), said, starts, strict=True)]
        (it,) = _contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=200).differences
        return it.verdict

    assert verdict((tuple("wxyz"), tuple("wxyz"))) == BETTER
    assert verdict((tuple("wxyz"), tuple("stuv"))) == UNCLEAR


def test_recipes_with_the_same_draws_of_labelled_rows_are_compared_draw_by_draw() -> None:
    rng = np.random.default_rng(16)
    labels = _labels(rng, 3000)
    none = np.zeros(3000)
    luck = (0.4, 0.5, 0.6, 0.7, 0.5, 0.6)  # of the draw: far more than the recipes differ by
    said = [
        np.array([_model(rng, labels, none, accuracy + gain, 1)[0] for accuracy in luck])
        for gain in (0.0, 0.06)
    ]

    def judged(draws: tuple[int, ...], starts: tuple[str, ...]) -> Difference:
        a = _contender("a", said[0], (), draws=(1, 2, 3, 4, 5, 6))
        b = _contender("b", said[1], starts, draws=draws)
        return _contest(labels, [a, b], NUM_LABELS, metric="accuracy", resamples=200).differences[0]

    for starts in ((), tuple("uuvvww")):
        paired, unpaired = judged((1, 2, 3, 4, 5, 6), starts), judged((6, 5, 4, 3, 2, 1), starts)
        assert paired.difference == pytest.approx(unpaired.difference)
        assert (paired.verdict, unpaired.verdict) == (BETTER, UNCLEAR)
        assert unpaired.standard_error > 2 * paired.standard_error
        if starts:  # the pre-trainings of the one that has them, and fine-tunings in pairs within
            assert paired.trainings == 3
            assert paired.hierarchical is not None
            assert unpaired.hierarchical is not None
            low, high = paired.hierarchical
            assert low < paired.difference < high
            assert high - low < 0.5 * (unpaired.hierarchical[1] - unpaired.hierarchical[0])


def test_pretrainings_with_the_same_mean_by_chance_are_no_surer_than_their_runs() -> None:
    rng = np.random.default_rng(18)
    labels = _labels(rng, 3000)
    none = np.zeros(3000)
    said = np.array([_model(rng, labels, none, a, 1)[0] for a in (0.4, 0.6, 0.5, 0.6, 0.4, 0.5)])
    rival = _contender("rival", _model(rng, labels, none, 0.47, 1), random=False)

    def error(starts: str) -> float:
        pair = [rival, _contender("ours", said, tuple(starts))]
        (it,) = _contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=200).differences
        return it.standard_error

    # Six runs whose deviation is .09, in two pre-trainings with the mean .5.
    assert error("uuuvvv") == pytest.approx(0.1 / 6**0.5, rel=0.1)
    assert error("uvwxyz") == pytest.approx(0.09 / 6**0.5, rel=0.1)


def test_draws_with_pretrainings_that_cross_each_other_are_not_paired() -> None:
    rng = np.random.default_rng(17)
    labels = _labels(rng, 300)
    said = _model(rng, labels, np.zeros(300), 0.5, 4, 0.1)
    pair = [
        _contender(name, said, tuple(starts), **more)
        for name, starts, more in (("a", "uuvv", DRAWS), ("b", "wxwx", DRAWS), ("c", "wxwx", {}))
    ]
    contrasts = [("b", "a"), ("c", "a")]
    crossed, without = _contest(
        labels, pair, NUM_LABELS, metric="accuracy", contrasts=contrasts
    ).differences
    assert crossed.standard_error == without.standard_error


def test_fine_tunings_within_pretrainings_have_a_second_interval_and_change_nothing_else() -> None:
    rng = np.random.default_rng(15)
    labels = _labels(rng, 300)
    none = np.zeros(300)
    said = [_model(rng, labels, none, accuracy, 6) for accuracy in (0.55, 0.6)]
    rival = _contender("rival", _model(rng, labels, none, 0.5, 1), random=False)

    def judged(starts: str) -> Contest:
        pair = [_contender(n, s, tuple(starts)) for n, s in zip("ab", said, strict=True)]
        contenders = [rival, *pair]
        return _contest(labels, contenders, NUM_LABELS, metric="accuracy", resamples=2000)

    for starts in ("uvwxyz", "uuuuuu", ""):  # one level: the interval is the usual one alone
        found = judged(starts)
        assert {each.hierarchical for each in (*found.scores, *found.differences)} == {None}
    nested = judged("uuuvvv")
    assert [bool(score.hierarchical) for score in nested.scores] == [False, True, True]
    for each in nested.differences:
        assert each.hierarchical is not None
        low, high = each.hierarchical
        assert low < each.difference < high
    assert nested == judged("uuuvvv")


def test_many_contrasts_are_corrected_by_holm() -> None:
    rng = np.random.default_rng(14)
    labels = _labels(rng, 500)
    said = {
        name: _model(rng, labels, np.zeros(500), accuracy, 1)
        for name, accuracy in {"a": 0.5, "b": 0.5, "c": 0.57, "d": 0.6}.items()
    }
    contenders = [_contender(name, found, random=False) for name, found in said.items()]

    def ps(*contrasts: tuple[str, str]) -> list[float]:
        found = _contest(labels, contenders, NUM_LABELS, metric="accuracy", contrasts=contrasts)
        assert [(d.candidate, d.reference) for d in found.differences] == list(contrasts)
        return [difference.p for difference in found.differences]

    pairs = [("b", "a"), ("c", "a"), ("d", "a")]
    alone = sorted((ps(pair)[0], pair) for pair in pairs)
    together = dict(zip(pairs, ps(*pairs), strict=True))
    # By hand: the smallest counts three times, the next twice, and none less than one before it.
    expected, largest = {}, 0.0
    for times, (p, pair) in zip((3, 2, 1), alone, strict=True):
        largest = max(largest, min(1.0, times * p))
        expected[pair] = largest
    assert together == pytest.approx(expected)


@pytest.mark.parametrize("seed_spread", [0.0, 0.06])
def test_the_interval_holds_the_true_difference_as_often_as_it_says(seed_spread: float) -> None:
    rng = np.random.default_rng(3)
    true, hits, draws, rows = 0.1, 0, 120, 300
    for draw in range(draws):
        labels = _labels(rng, rows)
        ease = rng.uniform(-0.2, 0.2, rows)
        contenders = [
            _contender("worse", _model(rng, labels, ease, 0.5, 3, seed_spread)),
            _contender("better", _model(rng, labels, ease, 0.5 + true, 3, seed_spread)),
        ]
        found = _contest(
            labels, contenders, NUM_LABELS, metric="accuracy", resamples=100, seed=draw
        )
        (difference,) = found.differences
        hits += difference.low <= true <= difference.high
    # 95 % with a standard error of 2 % over 120 draws; too wide is the lesser fault.
    assert 0.89 <= hits / draws <= 1.0


def test_few_seeds_that_disagree_make_the_interval_wide() -> None:
    rng = np.random.default_rng(5)
    labels = _labels(rng, 2000)
    none = np.zeros(2000)
    rival = _contender("rival", _model(rng, labels, none, 0.55))

    def width(*accuracies: float) -> float:
        rows = [_model(rng, labels, none, accuracy, 1)[0] for accuracy in accuracies]
        pair = [rival, _contender("ours", np.array(rows))]
        (it,) = _contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=300).differences
        return it.high - it.low

    assert width(0.5, 0.6, 0.7) > 4 * width(0.6, 0.6, 0.6)


def test_rows_of_one_text_stand_and_fall_together() -> None:
    rng = np.random.default_rng(6)
    texts = np.repeat(np.arange(100), 10)
    labels = _labels(rng, 1000)
    right = np.repeat(rng.random(100) < 0.6, 10)
    ours = np.where(right, labels, (labels + 1) % NUM_LABELS)[None]
    theirs = np.where(np.repeat(rng.random(100) < 0.6, 10), labels, (labels + 1) % NUM_LABELS)[None]
    pair = [_contender("theirs", theirs, random=False), _contender("ours", ours, random=False)]
    alone = _contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=400)
    together = _contest(labels, pair, NUM_LABELS, metric="accuracy", resamples=400, groups=texts)
    assert (alone.groups, together.groups) == ((1000,), (100,))
    ratio = together.differences[0].standard_error / alone.differences[0].standard_error
    assert ratio == pytest.approx(10**0.5, rel=0.2)


def test_one_seed_is_said_to_tell_nothing_of_seeds() -> None:
    rng = np.random.default_rng(7)
    labels = _labels(rng, 50)
    none = np.zeros(50)
    contenders = [
        _contender("fixed", _model(rng, labels, none, 0.5, 1), random=False),
        _contender("once", _model(rng, labels, none, 0.5, 1)),
        _contender("twice", _model(rng, labels, none, 0.5, 2)),
    ]
    found = _contest(labels, contenders, NUM_LABELS, metric="accuracy", resamples=50)
    assert found.one_seed == ("once",)
    assert [score.deviation is None for score in found.scores] == [True, True, False]


def test_the_same_predictions_twice_are_not_distinguishable() -> None:
    rng = np.random.default_rng(8)
    labels = _labels(rng, 200)
    said = _model(rng, labels, np.zeros(200), 0.6)
    pair = [_contender(name, said[:1], random=False) for name in ("one", "other")]
    (it,) = _contest(labels, pair, NUM_LABELS, metric="macro_f1", resamples=50).differences
    assert (it.difference, it.standard_error, it.verdict) == (0.0, 0.0, UNCLEAR)


def test_the_same_contest_gives_the_same_numbers() -> None:
    labels, contenders = _trio(np.random.default_rng(9), rows=200)
    one, other = (
        _contest(labels, contenders, NUM_LABELS, metric="macro_f1", resamples=50) for _ in range(2)
    )
    assert one == other


def test_predictions_for_other_rows_are_refused() -> None:
    labels = np.zeros(4, int)
    with pytest.raises(ContractViolation, match="2 predictions of ours for 4 rows, got 2 for 3"):
        _contest(labels, [_contender("ours", np.zeros((2, 3), int))], 2, metric="accuracy")
    with pytest.raises(ContractViolation, match="no rows"):
        _contest(labels[:0], [_contender("ours", np.zeros((1, 0), int))], 2, metric="accuracy")
