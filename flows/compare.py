"""Compares recipes over several seeds on the same rows, by score and cost."""

from __future__ import annotations

from typing import Literal

from prefect import flow

from fourstage.recipe.schema import Seed
from tasks.comparison.budgets import equal_budgets, run_entry, searched
from tasks.comparison.compare import compare_runs
from tasks.comparison.entries import check_equal, contrasts_of, entries_of
from tasks.comparison.participants import SeedRun
from tasks.orchestration.failures import says_what_next
from tasks.orchestration.naming import named


@flow(name="compare", flow_run_name=named("compare", "recipes"))
@says_what_next("compare")
def compare(
    recipes: list[str],
    overrides: list[str] | None = None,
    smoke: bool = False,
    seeds: list[Seed] | None = None,
    equal: Literal["tokens", "time"] | None = None,
    contrasts: list[str] | None = None,
    variants: list[str] | None = None,
    accept_code_change: list[str] | None = None,
) -> dict:
    """Run recipes over seeds, shared steps once, and test the differences.

    A recipe with a search is compared with the settings that it chooses.

    Nothing is registered. A finished run costs only look-ups, so an interrupted comparison
    continues where it was.

    Args:
        recipes: Names or paths; the first sets the measure for `equal`.
        overrides: ``a.b=c`` settings that override those of all recipes.
        smoke: Whether to run them as quick trials, at size tiny, on embedded data.
        seeds: Different seeds to use instead of the recipes' own.
        equal: ``tokens`` or ``time``: scale pre-training to that of the first recipe.
        contrasts: What to test, as ``CANDIDATE:REFERENCE``, by names of recipes or
            ``cheap_baseline``; by default every recipe against the first and the cheap baseline.
        variants: Further participants: each recipe with other settings, as ``NAME:a.b=c``. One of
            RECIPE is called ``RECIPE-NAME``.
        accept_code_change: Stages to reuse although the code that made them has changed since.

    Returns:
        The table, as stored in ``table.json``.
    """
    entries = entries_of(
        recipes, overrides or [], smoke, seeds, variants or [], accept_code_change or []
    )
    check_equal(entries, equal)
    pairs = contrasts_of(entries, contrasts)
    runs: dict[str, list[SeedRun]] = {}
    for number, entry in enumerate(entries):
        if number:
            first = runs[entries[0].name][0]
            entry = equal_budgets(entry, first, equal)
        entries[number] = entry = searched(entry)
        runs[entry.name] = [run_entry(entry, seed) for seed in entry.seeds]
    return compare_runs(entries, runs, equal, pairs)
