"""Successive halving finds a rigged best candidate and spends what it may."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.comparison.halving import Expense, best_first, factors, most_rounds, sizes


@pytest.mark.parametrize(
    ("candidates", "rounds", "expected"),
    [
        (1, 3, [1]),
        (2, 1, [2]),
        (2, 4, [2]),
        (3, 2, [3, 2]),
        (8, 3, [8, 4, 2]),
        (9, 3, [9, 4, 2]),
        (9, 2, [9, 2]),
        (9, 1, [9]),
        (9, 4, [9, 5, 3, 2]),
    ],
)
def test_rounds_fall_evenly_to_two(candidates: int, rounds: int, expected: list[int]) -> None:
    assert sizes(candidates, rounds) == expected


def test_no_more_rounds_than_halve_the_candidates() -> None:
    assert [most_rounds(n) for n in (1, 2, 3, 4, 5, 8, 9)] == [1, 1, 2, 2, 3, 3, 4]
    for n in range(1, 40):
        found = sizes(n, most_rounds(n))
        assert found[-1] == min(n, 2)
        assert all(after >= before / 2 - 1 for before, after in pairwise(found))


def test_of_equal_scores_the_cheaper_one_is_first() -> None:
    scores = {"dear": 0.8, "cheap": 0.8, "good": 0.9}
    assert best_first("accuracy", scores, {"dear": 9.0, "cheap": 1.0, "good": 30.0}) == [
        "good",
        "cheap",
        "dear",
    ]


def test_of_a_perplexity_the_lowest_is_first() -> None:
    scores = {"worse": 30.0, "best": 10.0, "good": 20.0}
    assert best_first("perplexity", scores, dict.fromkeys(scores, 1.0)) == ["best", "good", "worse"]


BESIDE = 7.0  # seconds of a stage that don't depend on its budget


def alone(
    seconds: float, finetuning: float, name: str, least: float = 0.0, beside: float = 0.0
) -> Expense:
    return Expense({name: seconds} if seconds else {}, finetuning, name, least, beside=beside)


def test_pretraining_gets_what_fine_tuning_leaves_in_equal_parts() -> None:
    expenses = {
        "labels": alone(0.0, 20.0, "small"),
        "small": alone(100.0, 20.0, "small"),
        "large": alone(400.0, 40.0, "large"),
    }
    got, missing = factors(expenses, 480.0)
    assert missing == {}
    assert got == {"labels": 1.0, "small": 2.0, "large": 0.5}


def test_stages_that_candidates_share_are_paid_for_once() -> None:
    general, domain, task = {"general": 60.0}, {"domain": 30.0}, {"task": 10.0}
    expenses = {
        "whole": Expense({**general, **domain, **task}, 10.0),
        "no-task": Expense({**general, **domain}, 10.0),
        "no-general": Expense({"domain alone": 30.0, "task after it": 10.0}, 10.0),
    }
    got, _ = factors(expenses, 100.0)
    assert got == dict.fromkeys(expenses, (100.0 - 30.0) / (60.0 + 30.0 + 10.0 + 40.0))


def test_what_would_be_too_short_is_left_out_and_the_others_share_its_part() -> None:
    expenses = {
        "labels": alone(0.0, 10.0, "small"),
        "small": alone(100.0, 10.0, "small", least=0.5),
        "large": alone(900.0, 10.0, "large", least=0.5),
    }
    got, missing = factors(expenses, 120.0)
    assert missing == {"large": 450.0 - 45.0}
    assert got == {"labels": 1.0, "small": 1.0}
    got, missing = factors(expenses, 25.0)
    assert got == {"labels": 1.0}
    assert set(missing) == {"small", "large"}


def test_of_one_network_the_candidate_that_saves_most_is_left_out_first() -> None:
    expenses = {
        "whole": Expense({"general": 60.0, "task": 10.0}, 0.0, least=1.0),
        "no-general": Expense({"task alone": 40.0}, 0.0, least=1.0),
    }
    got, missing = factors(expenses, 80.0)
    assert got == {"whole": 80.0 / 70.0}
    assert missing == {"no-general": 30.0}


def test_candidates_of_a_network_share_the_factor_that_the_smallest_text_allows() -> None:
    general, domain = {"general": 60.0}, {"domain": 30.0}
    expenses = {
        "whole": Expense({**general, **domain}, 0.0, "small", least=0.5, most=1.25),
        "no-domain": Expense(general, 0.0, "small", least=2.0, most=4.0),
        "large": Expense({"larger": 90.0}, 0.0, "large", least=0.5, most=4.0),
    }
    got, missing = factors(expenses, 600.0)
    assert missing == {}, "what a text does not allow can't be made up by minutes"
    assert got == {"whole": 1.25, "no-domain": 1.25, "large": 300 / 90}
    got, missing = factors(expenses, 200.0)
    assert missing == {"no-domain": 1.25 * 90 - 100}, "which alone would need more than its part"
    assert got == {"whole": 100 / 90, "large": 100 / 90}


def test_what_a_stage_costs_beside_its_training_is_paid_once_and_not_scaled() -> None:
    stages = {"general": 60.0, "domain": 40.0}
    expenses = {
        "whole": Expense(stages, 10.0, beside=5.0),
        "no-domain": Expense({"general": 60.0}, 10.0, beside=5.0),
    }
    got, missing = factors(expenses, 80.0)
    assert missing == {}
    assert got == dict.fromkeys(expenses, (80.0 - 2 * 10.0 - 2 * 5.0) / (60.0 + 40.0))


def test_labels_alone_that_take_too_long_are_left_out_the_longest_first() -> None:
    expenses = {"short": alone(0.0, 2.0, ""), "long": alone(0.0, 30.0, "")}
    assert factors(expenses, 70.0, seeds=3) == ({"short": 1.0}, {"long": 26.0})
    free = {"one": alone(0.0, 0.0, ""), "two": alone(0.0, 0.0, "")}
    assert factors(free, -5.0) == ({"one": 1.0, "two": 1.0}, {}), "what costs nothing stays"


def test_a_network_of_which_no_cost_is_known_is_tried_as_written() -> None:
    expenses = {
        "unread": Expense({"general": 0.0}, 10.0, "own"),
        "whole": alone(100.0, 10.0, "small"),
    }
    assert factors(expenses, 120.0) == ({"unread": 1.0, "whole": 0.5}, {})


def test_where_nothing_fits_one_candidate_is_still_kept() -> None:
    got, _ = factors({n: alone(100.0, 50.0, n, least=0.5) for n in ("one", "two")}, 1.0)
    assert list(got.values()) == [0.5]


@given(
    st.lists(
        st.tuples(st.just(0.0) | st.floats(1, 1e4), st.floats(0, 1e3), st.floats(0, 1)),
        min_size=1,
        max_size=9,
    ),
    st.floats(1, 1e5),
    st.integers(1, 3),
)
def test_what_is_kept_fits_unless_only_one_is_left(costs, seconds: float, seeds: int) -> None:
    expenses = {f"{i}": alone(p, f, f"{i}", least, BESIDE) for i, (p, f, least) in enumerate(costs)}
    got, missing = factors(expenses, seconds, seeds)
    assert set(got) | set(missing) == set(expenses)
    assert set(got).isdisjoint(missing)
    pretraining = sum(got[n] * sum(expenses[n].stages.values()) for n in got)
    finetuning = seeds * sum(expenses[n].finetuning for n in got)
    pretraining += sum(BESIDE for n in got if expenses[n].stages)
    if len(got) > 1:
        assert pretraining + finetuning <= seconds * (1 + 1e-9)


def test_a_rigged_best_candidate_is_found_at_a_fraction_of_the_cost_of_trying_all_fully() -> None:
    """Scores come nearer to the truth with the budget, as learning curves do."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        truth = dict(zip("abcdefgh", rng.permutation(np.linspace(0.6, 0.9, 8)), strict=True))
        left = list(truth)
        for number, count in enumerate(sizes(8, 3)):
            noise = 0.04 / 2**number
            scores = {name: truth[name] + noise * rng.normal() for name in left[:count]}
            left = best_first("accuracy", scores, dict.fromkeys(scores, 1.0))
        found += left[0] == max(truth, key=truth.__getitem__)
    assert found > 170
