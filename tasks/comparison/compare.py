"""Save a comparison in the home, in one MLflow run and on a Prefect page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from fourstage.activity import activity
from fourstage.digests import unfinished, write_atomically
from fourstage.settings import home
from tasks.comparison.comparison_report import markdown, plot
from tasks.comparison.comparison_table import judge
from tasks.comparison.participants import Entry, SeedRun
from tasks.orchestration.posting import post
from tasks.reports.plots import data_address
from tasks.tracking.connection import Tracking, answered, connect, made_once
from tasks.tracking.runs import ensure_experiment, find_run, finish_run, metric_name

EXPERIMENT = "comparisons"
PICTURE = "plot.png"


@task(name="compare_runs", task_run_name="compare-runs", cache_policy=NO_CACHE)
def compare_runs(
    entries: Sequence[Entry],
    runs: Mapping[str, Sequence[SeedRun]],
    equal: str | None,
    contrasts: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """Compare finished runs, then save and show the table and the plot.

    Returns:
        The table as plain JSON, with the folder it is saved in.
    """
    with activity("judging the differences"):
        table = judge(entries, runs, equal, contrasts)
    folder = home() / EXPERIMENT / table["digest"]
    table["folder"] = str(folder)
    picture = plot(table)
    _keep(folder, table, picture)
    _publish(connect(), folder, table)
    _show(table, picture)
    return table


def _keep(folder: Path, table: Mapping[str, Any], picture: bytes) -> None:
    write_atomically(folder / "table.md", markdown(table, PICTURE))
    temporary = unfinished(folder / PICTURE)
    temporary.write_bytes(picture)
    temporary.replace(folder / PICTURE)
    text = json.dumps(table, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False)
    write_atomically(folder / "table.json", text + "\n")


@answered
def _publish(tracking: Tracking, folder: Path, table: Mapping[str, Any]) -> None:
    """Log a comparison to MLflow, always to the same run."""
    from tasks.tracking.tags import KEY, KIND

    client = tracking.client
    found = find_run(tracking, table["digest"])
    if found is None:
        experiment_id = ensure_experiment(tracking, EXPERIMENT)
        name = f"compare-{table['digest'][:7]}"
        marks = {KEY: table["digest"], KIND: "comparison"}
        found = made_once(
            lambda: client.create_run(experiment_id, run_name=name, tags=marks),
            lambda: find_run(tracking, table["digest"]),
        )
    run_id = found.info.run_id
    for recipe in table["recipes"]:
        for metric, score in recipe["metrics"].items():
            name = metric_name(f"{recipe['name']}/{metric}")
            if name not in found.data.metrics:
                client.log_metric(run_id, name, score["mean"])
    for path in sorted(folder.iterdir()):
        client.log_artifact(run_id, str(path))
    finish_run(tracking, run_id)


def _show(table: Mapping[str, Any], picture: bytes) -> None:
    """Post the comparison to Prefect."""
    recipes = "-".join(recipe["name"] for recipe in table["recipes"])
    post(recipes, "comparison", markdown(table, data_address(picture)), "Recipes over seeds")
