"""Finds the recipe that is best for your rows in the minutes you have, and registers its model."""

from __future__ import annotations

from typing import Annotated

from prefect import flow
from pydantic import Field

from flows.lifecycle import lifecycle
from tasks.comparison.choice_meter import Meter
from tasks.comparison.choice_preparation import prepare
from tasks.comparison.choice_report import show_choice
from tasks.comparison.choice_rounds import close_round, next_round
from tasks.comparison.choice_trials import try_candidate
from tasks.comparison.compare import compare_runs
from tasks.comparison.entries import contrasts_of
from tasks.comparison.finalists import judge_finalists
from tasks.comparison.model_choice import JUDGING, close_choice, open_choice
from tasks.orchestration.failures import says_what_next
from tasks.orchestration.naming import named


@flow(name="choose", flow_run_name=named("choose", "recipe"))
@says_what_next("choose")
def choose(
    recipe: str,
    overrides: list[str] | None = None,
    smoke: bool = False,
    minutes: Annotated[float, Field(ge=1)] = 60.0,
    candidates: list[str] | None = None,
    without: list[str] | None = None,
    begun: float | None = None,
) -> dict:
    """Try candidates in rounds, judge the last two on the test rows, register one.

    A stopped choice goes on where it was: its rounds are kept, and its stages are in the store.

    Args:
        recipe: Name or path of a recipe with labels.
        overrides: ``a.b=c`` settings that override the recipe's.
        smoke: Whether to run it as a quick trial, at size tiny, on embedded data.
        minutes: How long it may take in all. No stage is trained beyond what test rows and
            registration are expected to need, but what reads data and judges is not cut off.
        candidates: Further candidates, as ``NAME:a.b=c``; a name that comes again adds a setting.
        without: Names of candidates to leave out.
        begun: Seconds since the epoch at which the minutes began; by default now.

    Returns:
        ``choice`` with all rounds, ``comparison`` of the last two on the test rows, and the
        ``summary`` of the chosen recipe's run with gate and model.
    """
    choice = open_choice(
        recipe, overrides or [], smoke, minutes, candidates or [], without or [], begun
    )
    with choice.alone():
        prepare(choice)
        while turn := next_round(choice):
            for name in turn["factors"]:
                try_candidate(choice, turn, name)
            close_round(choice)
        entries, runs = judge_finalists(choice)
        with Meter(choice, to=JUDGING) as meter:
            meter.begin("registration")
            comparison = compare_runs(entries, runs, None, contrasts_of(entries))
            summary = lifecycle(
                recipe, list(entries[0].overrides), smoke, return_state=True
            ).result()
        close_choice(choice)
    assert isinstance(summary, dict)
    return show_choice(choice, comparison, summary)
