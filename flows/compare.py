"""Several recipes, several seeds, the same rows: which is better, and what did it cost?"""

from __future__ import annotations

from prefect import flow

from tasks.compare import compare_runs
from tasks.entries import (
    Run,
    check_equal,
    contrasts_of,
    entries_of,
    equal_budgets,
    run_entry,
)
from tasks.failures import says_what_next
from tasks.naming import named


@flow(name="compare", flow_run_name=named("compare", "recipes"))
@says_what_next("compare")
def compare(
    recipes: list[str],
    overrides: list[str] | None = None,
    smoke: bool = False,
    seeds: list[int] | None = None,
    equal: str | None = None,
    contrasts: list[str] | None = None,
) -> dict:
    """Run recipes over seeds, what they share once, and judge the differences.

    Nothing is registered. A run that is finished costs look-ups only, so an interrupted comparison
    goes on where it was.

    Args:
        recipes: Names or paths; the first sets the measure for `equal`.
        overrides: ``a.b=c`` settings laid over all of them.
        smoke: Whether to keep only their structure, at size tiny, on embedded data.
        seeds: In place of the recipes' own.
        equal: ``tokens`` or ``time``: scale pre-training to that of the first recipe.
        contrasts: ``CANDIDATE:REFERENCE`` by the recipes' names, or ``cheap_baseline``: what is
            judged; every recipe against the first and against the cheap baseline where left out.

    Returns:
        The table, as it is kept in ``table.json``.
    """
    entries = entries_of(recipes, overrides or [], smoke, seeds)
    check_equal(entries, equal)
    pairs = contrasts_of(entries, contrasts)
    runs: dict[str, list[Run]] = {}
    for number, entry in enumerate(entries):
        if number:
            first = runs[entries[0].name][0]
            entries[number] = entry = equal_budgets(entry, first, equal)
        runs[entry.name] = [run_entry(entry, seed) for seed in entry.seeds]
    return compare_runs(entries, runs, equal, pairs)
