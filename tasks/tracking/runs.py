"""Runs in MLflow: an experiment per model, a run per lifecycle, a child run per trained stage.

Every function names its run explicitly. MLflow's "active run" is local to a thread, so with
Prefect's threads it creates phantom runs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tasks.orchestration.processes import identity
from tasks.store.provenance import git_state
from tasks.tracking.connection import Tracking, answered, every, made_once
from tasks.tracking.tags import DIGEST, HOME, KEY, KIND, RECIPE, REQUEST, STAGE

if TYPE_CHECKING:
    from mlflow.entities import Run

    from fourstage.recipe.resolved import ResolvedRecipe

BATCH = 1000  # metrics in one request, MLflow's limit
PARAM_BATCH = 100
# What MLflow would read as another path: a blank part, or one of one or two dots.
NO_PATH = re.compile(r"(?<=/)/|^/|/$|(?<![^/])\.{1,2}(?![^/])")
NAME_LENGTH = 250  # characters of a metric's or parameter's name, MLflow's limit
PARAM_LENGTH = 6000  # characters of a parameter's value, MLflow's limit


def experiment_of(recipe: ResolvedRecipe) -> str:
    """Name of a recipe's experiment: the model it registers, else the recipe's name.

    All runs that compete for a model are therefore in one table and one chart, whatever their
    recipe.
    """
    return recipe.model or recipe.name


@answered
def ensure_experiment(tracking: Tracking, name: str) -> str:
    """Id of an experiment, created if missing. Safe with concurrent processes."""
    from mlflow.exceptions import MlflowException

    client = tracking.client
    if found := client.get_experiment_by_name(name):
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return found.experiment_id
    # By default, MLflow writes artifacts of a local database into the current folder.
    place = (tracking.folder / "mlflow").as_uri() if tracking.local else None
    try:
        return client.create_experiment(
            name,
            place,
            # Opens MLflow's pages in the view for training, not that for prompts and agents.
            tags={"mlflow.experimentKind": "custom_model_development"},
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        found = client.get_experiment_by_name(name)
        assert found is not None
        return found.experiment_id


@answered
def start_lifecycle(
    tracking: Tracking,
    recipe_name: str,
    *,
    experiment: str = "",
    resolved: str = "",
    tags: Mapping[str, str] | None = None,
) -> str:
    """Start a lifecycle run, the parent of its stages' runs.

    Args:
        tracking: The MLflow connection.
        recipe_name: Name of the recipe.
        experiment: Name of its experiment, see `experiment_of`; default: the recipe's name.
        resolved: The resolved recipe as YAML, logged as ``recipe.yaml``.
        tags: More tags, such as ``prefect.flow_run_id`` and ``prefect.flow_run_url``.

    Returns:
        The run's id.
    """
    experiment_id = ensure_experiment(tracking, experiment or recipe_name)
    request = str(uuid4())
    marks = {KIND: "lifecycle", RECIPE: recipe_name, REQUEST: request, HOME: tracking.home}
    name = f"{recipe_name}-{time.strftime('%m%d-%H%M%S', time.gmtime())}"
    search = {"filter_string": f"tags.`{REQUEST}` = '{request}'", "max_results": 1}
    run = made_once(
        lambda: tracking.client.create_run(
            experiment_id, run_name=name, tags={**marks, **_circumstances(), **(tags or {})}
        ),
        lambda: next(iter(tracking.client.search_runs([experiment_id], **search)), None),
    )
    if resolved:
        tracking.client.log_text(run.info.run_id, resolved, "recipe.yaml")
    return run.info.run_id


@answered
def stage_run(
    tracking: Tracking,
    experiment_id: str,
    key: str,
    *,
    stage: str,
    parent_run_id: str | None = None,
    settings: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Start this home's run of a stage, or resume the one that a killed process left.

    Args:
        tracking: The MLflow connection.
        experiment_id: Its experiment.
        key: The stage artifact's key.
        stage: The stage's name.
        parent_run_id: The lifecycle run.
        settings: The resolved stage, logged as flat parameters and as ``stage.yaml``.
        tags: More tags.

    Returns:
        The run's id.
    """
    client = tracking.client
    marks = {KEY: key, KIND: "stage", STAGE: stage, HOME: tracking.home}
    marks |= {**_circumstances(), **(tags or {})}
    if parent_run_id:
        marks["mlflow.parentRunId"] = parent_run_id
    found = open_run(tracking, key)
    if found is None:
        found = made_once(
            lambda: client.create_run(experiment_id, run_name=f"{stage}-{key[:7]}", tags=marks),
            lambda: open_run(tracking, key),
        )
    else:
        client.update_run(found.info.run_id, status="RUNNING")
        set_tags(tracking, found.info.run_id, marks)
    if settings is not None:
        _log_settings(tracking, found, settings)
    return found.info.run_id


@answered
def open_run(tracking: Tracking, key: str) -> Run | None:
    """This home's unfinished run of a stage, by key. Runs of other homes are ignored."""
    ours = f"tags.`{HOME}` = '{tracking.home}' AND attributes.status != 'FINISHED'"
    return find_run(tracking, key, ours)


@answered
def is_active(tracking: Tracking, run_id: str) -> bool:
    """Whether a run is there, and not deleted: MLflow logs nothing more to one that is."""
    from mlflow.exceptions import MlflowException

    try:
        return tracking.client.get_run(run_id).info.lifecycle_stage == "active"
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
    return False


@answered
def finished_run(tracking: Tracking, key: str, digest: str) -> Run | None:
    """A finished run with a key and an output digest.

    The key does not cover differences between machines, so runs with the same key may have
    different weights.
    """
    done = f"tags.`{DIGEST}` = '{digest}' AND attributes.status = 'FINISHED'"
    return find_run(tracking, key, done)


@answered
def find_run(tracking: Tracking, key: str, more: str = "") -> Run | None:
    """The first run with a key, in any experiment.

    Args:
        tracking: The MLflow connection.
        key: Key of a stage or a comparison.
        more: Another condition, in MLflow's filter syntax.
    """
    found = tracking.client.search_runs(
        experiment_ids(tracking),
        filter_string=f"tags.`{KEY}` = '{key}'" + (f" AND {more}" if more else ""),
        max_results=1,
        order_by=["attributes.start_time ASC"],
    )
    return found[0] if found else None


@answered
def experiment_ids(tracking: Tracking) -> list[str]:
    """Ids of all experiments, for searches across experiments."""
    found = every(tracking.client.search_experiments, max_results=1000)
    return [experiment.experiment_id for experiment in found]


@answered
def log_history(tracking: Tracking, run_id: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Log metrics by step. A repeated (name, step) is logged once.

    Args:
        tracking: The MLflow connection.
        run_id: The stage's run.
        rows: ``{"step": s, name: value, …}``, ordered by step.

    Returns:
        Number of new values.
    """
    from mlflow.entities import Metric

    last = tracking.logged.setdefault(run_id, {})
    reached: dict[str, int] = {}
    now = int(time.time() * 1000)
    fresh: list[Metric] = []
    for row in rows:
        step = int(row["step"])
        for said, value in row.items():
            if said == "step" or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            name = metric_name(said)
            if name not in last:
                # Steps that an earlier process logged before it was killed.
                last[name] = max(
                    (old.step for old in tracking.client.get_metric_history(run_id, name)),
                    default=-1,
                )
            if step > reached.setdefault(name, last[name]):
                reached[name] = step
                fresh.append(Metric(name, float(value), now, step))
    for start in range(0, len(fresh), BATCH):
        batch = fresh[start : start + BATCH]
        tracking.client.log_batch(run_id, metrics=batch)
        last.update((metric.key, metric.step) for metric in batch)  # a failed batch is retried
    return len(fresh)


@answered
def finish_run(tracking: Tracking, run_id: str, status: str = "FINISHED") -> None:
    """Close a run as ``FINISHED``, ``FAILED`` or ``KILLED``.

    The status of a closed run can change only to ``FINISHED``.
    """
    now = tracking.client.get_run(run_id).info.status
    if now in ("RUNNING", "SCHEDULED") or (status == "FINISHED" and now != status):
        tracking.client.set_terminated(run_id, status=status)


@answered
def set_tags(tracking: Tracking, run_id: str, tags: Mapping[str, str]) -> None:
    """Set tags of a run, in one request."""
    from mlflow.entities import RunTag

    marks = [RunTag(name, value) for name, value in tags.items()]
    tracking.client.log_batch(run_id, tags=marks)


@contextmanager
def system_metrics(tracking: Tracking, run_id: str, seconds: int = 5) -> Iterator[None]:
    """Log processor, memory, disk and network use of this machine while the block runs.

    Args:
        tracking: The MLflow connection.
        run_id: The stage's run.
        seconds: Time between samples; ``MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL`` overrides it.
    """
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    monitor = SystemMetricsMonitor(
        run_id, sampling_interval=seconds, resume_logging=True, tracking_uri=tracking.uri
    )
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()


def metric_name(name: str) -> str:
    """A name that MLflow accepts: letters, digits and ``_-. /:``, at most 250 characters."""
    plain = re.sub(r"[^\w\-. /:]", "_", name)[:NAME_LENGTH]
    return NO_PATH.sub(lambda found: "_" * len(found[0]), plain)


def flat(settings: Mapping[str, Any], at: str = "") -> dict[str, str]:
    """Nested settings as ``{"optimizer.adamw.warmup": "0.06"}``."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        place = f"{at}.{name}" if at else str(name)
        if isinstance(value, Mapping) and value:
            found |= flat(value, place)
        elif isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value):
            found |= flat({str(i): part for i, part in enumerate(value)}, place)
        else:
            found[place] = str(value)
    return found


def _log_settings(tracking: Tracking, run: Run, settings: Mapping[str, Any]) -> None:
    """Log the parameters that a run lacks. Existing ones are equal, since the key is."""
    import yaml
    from mlflow.entities import Param

    missing = [
        Param(metric_name(name), value[:PARAM_LENGTH])
        for name, value in flat(settings).items()
        if metric_name(name) not in run.data.params
    ]
    if not missing:
        return
    text = yaml.safe_dump(dict(settings), allow_unicode=True, sort_keys=False)
    tracking.client.log_text(run.info.run_id, text, "stage.yaml")
    for start in range(0, len(missing), PARAM_BATCH):
        tracking.client.log_batch(run.info.run_id, params=missing[start : start + PARAM_BATCH])


def _circumstances() -> dict[str, str]:
    """Tags with the code and process of a run."""
    git = git_state()
    commit = str(git["commit"] or "none")
    return {
        "git.commit": commit,
        "git.dirty": str(git["dirty"]).lower(),
        "mlflow.source.name": "fourstage",
        "mlflow.source.git.commit": commit,
        **identity(),
    }
