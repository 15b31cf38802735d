"""Runs in MLflow: one experiment a recipe, one run a lifecycle, one below it a trained stage.

Every function names its run. MLflow's own "active run" belongs to a thread and its tracking address
to the process, so with Prefect's threads they lead to phantom runs; neither is used here.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from fourstage.errors import EnvironmentFault
from fourstage.settings import home, mlflow_uri, without_credentials
from fourstage.space import no_space
from tasks.orphans import identity
from tasks.provenance import git_state

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

KEY = "fourstage.key"  # the tag by which runs, models and versions are found again
KIND = "fourstage.kind"  # "lifecycle" or "stage"
STAGE = "fourstage.stage"
BATCH = 1000  # metrics in one request, MLflow's limit
PARAM_BATCH = 100
PARAM_LENGTH = 6000  # characters of a parameter's value, MLflow's limit
CONNECT_SECONDS = 10  # how long a silent server may hold us up before any work

# Without the first three MLflow retries for minutes before it admits that its server is gone.
MANNERS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    # Standard output belongs to `--json`; addresses of runs are in the reports.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
# What a server, a database or a disk does wrong; every other code of MLflow's is a mistake of ours.
FAULTS = {
    "INTERNAL_ERROR",
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "CUSTOMER_UNAUTHORIZED",
    "IO_ERROR",
}

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Tracking:
    """A tracking server, or database, that has answered.

    Attributes:
        client: MLflow's client of it, for tracking and registry.
        uri: Its address, with credentials if it has any: for MLflow, never for a message.
        folder: The home, where local artifacts and locks lie.
        logged: Last step logged by run and metric name, as far as this process has looked.
    """

    client: MlflowClient
    uri: str
    folder: Path
    logged: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """The address without credentials."""
        return without_credentials(self.uri)

    @property
    def local(self) -> bool:
        """Whether it is a database this process writes itself."""
        return not self.uri.startswith(("http://", "https://", "databricks"))

    def page(self, path: str) -> str | None:
        """Address of a page for people, or None where no server shows it.

        Args:
            path: Such as ``experiments/3/runs/0f1f…`` or ``models/NAME/versions/2``.
        """
        shown = self.address if not self.local else os.environ.get("FOURSTAGE_MLFLOW_UI", "")
        return f"{shown.rstrip('/')}/#/{path}" if shown else None

    def run_page(self, run_id: str) -> str | None:
        """Address of a run's page."""
        experiment = self.client.get_run(run_id).info.experiment_id
        return self.page(f"experiments/{experiment}/runs/{run_id}")

    def model_page(self, model_id: str) -> str | None:
        """Address of a logged model's page."""
        experiment = self.client.get_logged_model(model_id).experiment_id
        return self.page(f"experiments/{experiment}/models/{model_id}")

    @contextmanager
    def as_default(self) -> Iterator[None]:
        """Make it the process's tracking address for MLflow's calls that know no other way.

        ``models:/`` addresses are resolved against it: to load a model or make a version of one.
        """
        import mlflow

        before = os.environ.get("MLFLOW_TRACKING_URI")
        mlflow.set_tracking_uri(self.uri)
        mlflow.set_registry_uri(self.uri)
        try:
            yield
        finally:
            mlflow.set_tracking_uri(before or "")
            mlflow.set_registry_uri("")
            if before is None:
                os.environ.pop("MLFLOW_TRACKING_URI", None)
            else:
                os.environ["MLFLOW_TRACKING_URI"] = before

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Be the only process of this home that does something, such as promoting a model."""
        name = re.sub(r"[^\w.-]", "_", what)
        path = self.folder / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def answered(
    function: Callable[Concatenate[Tracking, P], R],
) -> Callable[Concatenate[Tracking, P], R]:
    """Turn a server's silence or refusal into an `EnvironmentFault` that names its address."""

    @wraps(function)
    def call(tracking: Tracking, *args: P.args, **kwargs: P.kwargs) -> R:
        with _answering(tracking.uri):
            return function(tracking, *args, **kwargs)

    return call


def connect(uri: str | None = None, folder: Path | None = None) -> Tracking:
    """Reach the tracking server or make the database, before any work.

    Args:
        uri: Its address; default ``$MLFLOW_TRACKING_URI``, else SQLite under the home.
        folder: The home; default ``$FOURSTAGE_HOME``.

    Raises:
        EnvironmentFault: If it refuses, stays silent (10 s) or can't be written.
    """
    uri = uri or mlflow_uri()
    folder = folder or home()
    for name, value in MANNERS.items():
        os.environ.setdefault(name, value)
    scheme = uri.split(":", 1)[0]
    if scheme in ("file", "") or "://" not in uri:
        raise EnvironmentFault(
            f"MLFLOW_TRACKING_URI={without_credentials(uri)} is a folder of files, which MLflow no"
            " longer develops and which can't hold logged models. Give the address of a server, or"
            " sqlite:///PATH, or unset it to use SQLite under the home."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if scheme.startswith("sqlite"):
            database = Path(uri.split("///", 1)[-1])
            database.parent.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "mlflow.lock", "a+")
    except OSError as error:
        raise EnvironmentFault(
            f"the home {folder} can't be written by user {os.getuid()}: {error.strerror}."
            " Set FOURSTAGE_HOME to a folder of yours."
        ) from error

    from mlflow import MlflowClient

    for noisy in ("mlflow.system_metrics", "mlflow.store.model_registry", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It prints the stack of an error that it raises as well.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    with lock:
        # Two first visitors would both make the tables.
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _answering(uri), _briefly():
            if scheme.startswith("sqlite"):
                _make_database(uri, folder)
            client = MlflowClient(tracking_uri=uri, registry_uri=uri)
            client.search_experiments(max_results=1)
            client.search_registered_models(max_results=1)
    return Tracking(client, uri, folder)


def _make_database(uri: str, folder: Path) -> None:
    """Make a database that is not there: all of its tables first, then its name.

    MLflow makes its tables in dozens of migrations, and where it was killed in one of them it
    stumbles over what that left, ever after.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy.engine import make_url

    address = make_url(uri)
    database = Path(address.database or ":memory:")
    if database.name == ":memory:" or database.exists():
        return
    part = database.with_name(f".{database.name}.part")
    for left in (part, part.with_name(f"{part.name}-journal")):
        left.unlink(missing_ok=True)
    made = SqlAlchemyStore(str(address.set(database=str(part))), (folder / "mlflow").as_uri())
    made.engine.dispose()
    os.replace(part, database)


@answered
def ensure_experiment(tracking: Tracking, recipe_name: str) -> str:
    """Id of a recipe's experiment, made where it is missing; safe in several processes at once."""
    from mlflow.exceptions import MlflowException

    client = tracking.client
    if found := client.get_experiment_by_name(recipe_name):
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return found.experiment_id
    # Left alone, MLflow puts artifacts of a local database into the current folder.
    place = (tracking.folder / "mlflow").as_uri() if tracking.local else None
    try:
        return client.create_experiment(
            recipe_name,
            place,
            # MLflow's pages open as those of training, not of prompts and agents.
            tags={"mlflow.experimentKind": "custom_model_development"},
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        found = client.get_experiment_by_name(recipe_name)
        assert found is not None
        return found.experiment_id


@answered
def start_lifecycle(
    tracking: Tracking,
    recipe_name: str,
    *,
    resolved: str = "",
    tags: Mapping[str, str] | None = None,
) -> str:
    """Start the run of one lifecycle, the parent of its stages' runs.

    Args:
        tracking: The server.
        recipe_name: Name of the recipe, which is its experiment's.
        resolved: The resolved recipe as YAML, kept as ``recipe.yaml``.
        tags: More tags, such as ``prefect.flow_run_id`` and ``prefect.flow_run_url``.

    Returns:
        The run's id.
    """
    experiment_id = ensure_experiment(tracking, recipe_name)
    run = tracking.client.create_run(
        experiment_id,
        run_name=f"{recipe_name}-{time.strftime('%m%d-%H%M%S', time.gmtime())}",
        tags={
            KIND: "lifecycle",
            "fourstage.recipe": recipe_name,
            **_circumstances(),
            **(tags or {}),
        },
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
    """Start the one run of a stage's key, or go on with it where a kill left it.

    Args:
        tracking: The server.
        experiment_id: The recipe's experiment.
        key: The stage artifact's key.
        stage: The stage's name.
        parent_run_id: The lifecycle's run.
        settings: The resolved stage, logged flat as parameters and whole as ``stage.yaml``.
        tags: More tags.

    Returns:
        The run's id.
    """
    client = tracking.client
    marks = {KEY: key, KIND: "stage", STAGE: stage, **_circumstances(), **(tags or {})}
    if parent_run_id:
        marks["mlflow.parentRunId"] = parent_run_id
    found = find_run(tracking, key)
    if found is None:
        found = client.create_run(experiment_id, run_name=f"{stage}-{key[:7]}", tags=marks)
    elif found.info.status != "FINISHED":
        client.update_run(found.info.run_id, status="RUNNING")
        set_tags(tracking, found.info.run_id, marks)
    if settings is not None:
        _log_settings(tracking, found, settings)
    return found.info.run_id


@answered
def find_run(tracking: Tracking, key: str) -> Run | None:
    """The run of a stage's key, in whichever recipe's experiment it is."""
    found = tracking.client.search_runs(
        experiment_ids(tracking),
        filter_string=f"tags.`{KEY}` = '{key}'",
        max_results=1,
        order_by=["attributes.start_time ASC"],
    )
    return found[0] if found else None


@answered
def experiment_ids(tracking: Tracking) -> list[str]:
    """Ids of all experiments, for searches across recipes."""
    ids: list[str] = []
    token = None
    while True:
        page = tracking.client.search_experiments(max_results=1000, page_token=token)
        ids += [experiment.experiment_id for experiment in page]
        token = page.token
        if not token:
            return ids


@answered
def log_history(tracking: Tracking, run_id: str, rows: Iterable[Mapping[str, float]]) -> int:
    """Log metrics by step, each (name, step) once however often it is offered.

    Args:
        tracking: The server.
        run_id: The stage's run.
        rows: ``{"step": s, name: value, …}`` in the order of the steps.

    Returns:
        How many values were new.
    """
    from mlflow.entities import Metric

    last = tracking.logged.setdefault(run_id, {})
    now = int(time.time() * 1000)
    fresh: list[Metric] = []
    for row in rows:
        step = int(row["step"])
        for name, value in row.items():
            if name == "step" or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if name not in last:
                # What an earlier process logged before it was killed.
                last[name] = max(
                    (old.step for old in tracking.client.get_metric_history(run_id, name)),
                    default=-1,
                )
            if step > last[name]:
                last[name] = step
                fresh.append(Metric(metric_name(name), float(value), now, step))
    for start in range(0, len(fresh), BATCH):
        tracking.client.log_batch(run_id, metrics=fresh[start : start + BATCH])
    return len(fresh)


@answered
def finish_run(tracking: Tracking, run_id: str, status: str = "FINISHED") -> None:
    """Close a run as ``FINISHED``, ``FAILED`` or ``KILLED``.

    One that is closed stays as it is, unless it was killed and has been completed since.
    """
    now = tracking.client.get_run(run_id).info.status
    if now in ("RUNNING", "SCHEDULED") or (status == "FINISHED" and now != status):
        tracking.client.set_terminated(run_id, status=status)


@answered
def set_tags(tracking: Tracking, run_id: str, tags: Mapping[str, str]) -> None:
    """Set tags of a run, all in one request."""
    from mlflow.entities import RunTag

    marks = [RunTag(name, value) for name, value in tags.items()]
    tracking.client.log_batch(run_id, tags=marks)


@contextmanager
def system_metrics(tracking: Tracking, run_id: str, seconds: int = 5) -> Iterator[None]:
    """Log processor, memory, disk and network use of this machine while the block runs.

    Args:
        tracking: The server.
        run_id: The stage's run.
        seconds: Time between two samples; ``MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL`` overrides it.
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
    """A name as MLflow takes it: letters, digits, ``_-. /`` and nothing else."""
    return re.sub(r"[^\w\-. /:]", "_", name)


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
    """Log the parameters a run lacks; those it has can't change and are the same by the key."""
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
    """Tags that say which code and which process made a run."""
    git = git_state()
    commit = str(git["commit"] or "none")
    return {
        "git.commit": commit,
        "git.dirty": str(git["dirty"]).lower(),
        "mlflow.source.name": "fourstage",
        "mlflow.source.git.commit": commit,
        **identity(),
    }


@contextmanager
def _answering(uri: str) -> Iterator[None]:
    """Say in one sentence that, and where, MLflow is out of reach."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except MlflowException as error:
        database = isinstance(error.__cause__, SQLAlchemyError)
        if error.error_code not in FAULTS and not database:
            raise
        raise _unreachable(uri, error) from error
    except (RequestException, SQLAlchemyError, OSError) as error:
        raise _unreachable(uri, error) from error
    except ModuleNotFoundError as error:
        raise EnvironmentFault(
            f"MLflow at {without_credentials(uri)} (MLFLOW_TRACKING_URI): the package {error.name}"
            " that speaks to this database is not installed here. Install it (for PostgreSQL:"
            " psycopg2-binary), or give the address of an MLflow server; then run the same command"
            " again."
        ) from error


def _unreachable(uri: str, error: BaseException) -> EnvironmentFault:
    # The first cause says it in three words; what was raised from it says it in three lines.
    cause = error
    while (further := cause.__cause__ or cause.__context__) is not None:
        cause = further
    said = f"{type(cause).__name__}: {cause}".split("\n", 1)[0]
    if "@" in urlsplit(uri).netloc:
        said = said.replace(uri, without_credentials(uri))
    asked = "MLFLOW_TRACKING_URI" in os.environ or not uri.startswith("sqlite")
    where = "MLFLOW_TRACKING_URI" if asked else "under the home"
    if uri.startswith("sqlite") and (lack := no_space(home())):
        return EnvironmentFault(
            f"MLflow's database {without_credentials(uri)}: {lack}. What is finished is kept; make"
            " room or set FOURSTAGE_HOME, then run the same command again."
        )
    return EnvironmentFault(
        f"MLflow at {without_credentials(uri)} ({where}) does not answer as it should:"
        f" {said[:300]}. What is finished is kept. Start the server, or set MLFLOW_TRACKING_URI to"
        " one that runs, or unset it to use SQLite under the home; then run the same command again."
    )


@contextmanager
def _briefly() -> Iterator[None]:
    """One short try instead of MLflow's many long ones."""
    brief = {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": str(CONNECT_SECONDS),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    }
    before = {name: os.environ[name] for name in brief}
    os.environ.update(brief)
    try:
        yield
    finally:
        os.environ.update(before)
