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

    Returns:
        The finalists with the seeds that were judged, and the runs of each by its name.
    """
    entries = finalists_of(choice)
    runs: dict[str, list[SeedRun]] = {entry.name: [] for entry in entries}
    most, seeds = 0.0, entries[0].seeds
    with Meter(choice, to=JUDGING) as meter:
        for number, seed in enumerate(seeds):
            if number and most > seconds_left(choice, seeds=0):
                say(f"the minutes allow only {number} of {len(seeds)} seeds on the test rows")
                seeds = seeds[:number]
                break
            meter.begin(f"test rows at seed {seed}")
            for entry in entries:
                runs[entry.name].append(run_entry(entry, seed))
            most = max(most, meter.lap())
    return [_at_seeds(entry, seeds) for entry in entries], runs


def _at_seeds(entry: Entry, seeds: Sequence[int]) -> Entry:
    return replace(entry, seeds=tuple(seeds), together=len(seeds))
