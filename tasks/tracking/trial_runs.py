"""Searches in MLflow: what was tried, and the runs of stages that were not chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tasks.tracking.connection import Tracking, answered
from tasks.tracking.runs import finish_run, metric_name, open_run, set_tags
from tasks.tracking.tags import TRIAL


@answered
def log_search(tracking: Tracking, run_id: str, table: Mapping[str, Any], resolved: str) -> None:
    """Log a search to a lifecycle run: its table, and the recipe with what it chose.

    Args:
        tracking: The MLflow connection.
        run_id: The lifecycle run.
        table: As plain JSON.
        resolved: The resolved recipe as YAML, in place of the one with the search.
    """
    client = tracking.client
    client.log_text(run_id, json.dumps(table, indent=1), "search.json")
    client.log_text(run_id, resolved, "recipe.yaml")
    best = table["points"][table["chosen"]]
    client.log_metric(run_id, metric_name(f"search/{table['metric']}"), best["mean"])


@answered
def finish_trial(tracking: Tracking, key: str, trial: str, metric: str, score: float) -> None:
    """Finish the run of a trial, with its score. Its weights stay in the store alone.

    A trial that an earlier run of the recipe trained has a finished run already.

    Args:
        tracking: The MLflow connection.
        key: Key of the trained stage.
        trial: The trial in words.
        metric: Name of the metric.
        score: Its value on the rows that choose.
    """
    found = open_run(tracking, key)
    if found is None:
        return
    tracking.client.log_metric(found.info.run_id, metric_name(f"dev/{metric}"), score)
    set_tags(tracking, found.info.run_id, {TRIAL: trial})
    finish_run(tracking, found.info.run_id)
