"""The finalists of a choice, judged on the test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fourstage.terminal import say
from tasks.comparison.budgets import run_entry
from tasks.comparison.choice_entries import entry_of
from tasks.comparison.choice_meter import Meter
from tasks.comparison.choice_reserve import seconds_left
from tasks.comparison.halving import FINALISTS
from tasks.comparison.model_choice import JUDGING, ModelChoice
from tasks.comparison.participants import Entry, SeedRun


def finalists_of(choice: ModelChoice) -> list[Entry]:
    """The two best of the last round, the chosen one first, as entries of a comparison.

    Their seeds are those that both were trained at. Their gate asks what `not_below_baseline` says.
    """
    turn = choice.state["rounds"][-1]
    names, seeds = turn["best"][:FINALISTS], seeds_of_both(turn)
    entries = [entry_of(choice, name, turn) for name in names]
    return [_at_seeds(entry, seeds) for entry in entries]


def seeds_of_both(turn: Mapping[str, Any]) -> list[int]:
    """The seeds at which all finalists were trained."""
    tried = [turn["tried"][name] for name in turn["best"][:FINALISTS]]
    return turn["seeds"][: min(len(each["scores"]) for each in tried)]


def judge_finalists(choice: ModelChoice) -> tuple[list[Entry], dict[str, list[SeedRun]]]:
    """Score the finalists on the test rows, seed by seed as long as the minutes allow it.

    Which seeds these were is kept, so that who looks again finds the same comparison.

    Returns:
        The finalists with the seeds that were judged, and the runs of each by its name.
    """
    entries = finalists_of(choice)
    runs: dict[str, list[SeedRun]] = {entry.name: [] for entry in entries}
    seeds = entries[0].seeds
    with Meter(choice, to=JUDGING) as meter:
        for number, seed in enumerate(seeds):
            if not may_judge(choice, seed):
                say(f"the minutes allow only {number} of {len(seeds)} seeds on the test rows")
                seeds = seeds[:number]
                break
            meter.begin(_step(seed))
            for entry in entries:
                runs[entry.name].append(run_entry(entry, seed))
            meter.lap()
            state = choice.state
            choice.keep({**state, "tested": list(dict.fromkeys([*state["tested"], seed]))})
    return [_at_seeds(entry, seeds) for entry in entries], runs


def may_judge(choice: ModelChoice, seed: int) -> bool:
    """Whether a seed was judged before, or is to be: the first, or if it fits what is left.

    Once the choice is made, no other one is.
    """
    state = choice.state
    tested = state["tested"]
    if seed in tested or state["took"] is not None:
        return seed in tested
    longest = max((state[JUDGING][_step(each)] for each in tested), default=None)
    return longest is None or longest <= seconds_left(choice, seeds=0)


def _step(seed: int) -> str:
    return f"test rows at seed {seed}"


def _at_seeds(entry: Entry, seeds: Sequence[int]) -> Entry:
    return replace(entry, seeds=tuple(seeds), together=len(seeds))
