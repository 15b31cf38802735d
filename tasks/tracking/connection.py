"""Connection to MLflow: reach the server or database before any work, and report its faults.

MLflow's own tracking address is global to the process, which Prefect's threads share. Calls
therefore name the address explicitly.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from fourstage.digests import write_atomically
from fourstage.errors import EnvironmentFault
from fourstage.settings import PAGES, home, mlflow_uri, without_credentials
from fourstage.space import no_space, too_many_open_files
from tasks.tracking.database_lock import PUT_RIGHT, locked, wait_until_free
from tasks.tracking.database_schema import of_another_version

if TYPE_CHECKING:
    from mlflow import MlflowClient

HOME_ID = "home.id"  # file in the home
# Makes MLflow's pages open in the view for training instead of that for prompts and agents.
TRAINING = "workflowType=machine_learning"
CONNECT_SECONDS = 10  # timeout of a silent server at the start

# Retries for half a minute: 0, 2, 4, 8 and 16 s between tries. By default, MLflow retries for
# minutes before it reports that its server is gone.
MANNERS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "5",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    # Standard output is reserved for `--json`; reports contain the addresses of runs.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
# Error codes for faults of a server, database or disk. All other codes of MLflow indicate bugs.
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

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between tries of `made_once` and `connect`

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Tracking:
    """Connection to a tracking server or database that has responded.

    Attributes:
        client: MLflow's client for tracking and registry.
        uri: The address, including credentials: for MLflow, never for messages.
        folder: The home, which holds local artifacts and locks.
        home: The home's random id, since several homes may share a server.
        logged: Cache of the last logged step by run and metric name.
    """

    client: MlflowClient
    uri: str
    folder: Path
    home: str
    logged: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """The address without credentials."""
        return without_credentials(self.uri)

    @property
    def local(self) -> bool:
        """Whether it is a database that this process writes directly."""
        return is_local(self.uri)

    def page(self, path: str) -> str | None:
        """Address of a page in MLflow's UI, or None if no server is known.

        Args:
            path: Such as ``experiments/3/runs/0f1f…`` or ``models/NAME/versions/2``.
        """
        shown = self._pages_of_database() if self.local else self.address
        return f"{shown.rstrip('/')}/#/{path}?{TRAINING}" if shown else None

    def _pages_of_database(self) -> str:
        """Current or last address of this home's MLflow UI; empty if there never was one."""
        if said := os.environ.get("FOURSTAGE_MLFLOW_UI"):
            return said
        file = self.folder / PAGES
        return file.read_text(encoding="utf-8").strip() if file.is_file() else ""

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
        """Make it the process's tracking address, for MLflow calls that don't take an address.

        MLflow resolves ``models:/`` addresses against it when it loads a model or creates a
        version.
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
        """Hold a lock, so that only one process of this home does `what`."""
        path = self.lock_file(what)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def lock_file(self, what: str) -> Path:
        """The lock of `alone`.

        Where tracking is a SQLite database the lock lies beside it, so that homes which share it
        also share the lock.
        """
        name = re.sub(r"[^\w.-]", "_", what)
        shared = self.uri.startswith("sqlite")
        beside = database_file(self.uri).absolute().parent if shared else self.folder
        return beside / "locks" / f"{name}.lock"


def is_local(uri: str) -> bool:
    """Whether an address is that of a database, not of a server."""
    return not uri.startswith(("http://", "https://", "databricks"))


def answered(
    function: Callable[Concatenate[Tracking, P], R],
) -> Callable[Concatenate[Tracking, P], R]:
    """Decorator: turn faults of the server into an `EnvironmentFault` that names its address."""

    @wraps(function)
    def call(tracking: Tracking, *args: P.args, **kwargs: P.kwargs) -> R:
        with _answering(tracking.uri):
            return function(tracking, *args, **kwargs)

    return call


def made_once(create: Callable[[], R], find: Callable[[], R | None]) -> R:
    """Create a run, model or version exactly once, even if the server's response is lost.

    MLflow's client repeats a request whose response is lost, and the server would create a
    duplicate. So the request is sent without retries, and before each new try the result of an
    earlier one is looked up.

    Args:
        create: Sends the request.
        find: Finds the result of an earlier request; None if there is none.
    """
    from mlflow.exceptions import MlflowException

    for pause in PAUSES:
        try:
            with _with_retries(0):
                return create()
        except MlflowException as error:
            if error.error_code not in FAULTS:
                raise
        time.sleep(pause)
        if (found := find()) is not None:
            return found
    return create()


def every(search: Callable[..., Any], *args: Any, **settings: Any) -> Iterator[Any]:
    """All results of an MLflow search, from all pages."""
    token = None
    while True:
        page = search(*args, **settings, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def connect(uri: str | None = None, folder: Path | None = None) -> Tracking:
    """Connect to the tracking server, or create the database, before any work.

    Args:
        uri: Its address; default ``$MLFLOW_TRACKING_URI``, else SQLite under the home.
        folder: The home; default ``$FOURSTAGE_HOME``.

    Raises:
        EnvironmentFault: The server refuses or does not answer within 10 s, or the database can't
            be written.
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
        urlsplit(uri)
    except ValueError as error:
        said = without_credentials(uri)
        raise EnvironmentFault(f"MLFLOW_TRACKING_URI={said} is invalid: {error}") from error
    place = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "mlflow.lock", "a+")
        if scheme.startswith("sqlite"):
            place = database_file(uri).parent
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):  # MLflow would retry for minutes
                pass
    except OSError as error:
        raise EnvironmentFault(
            f"the folder {place} can't be written by user {os.getuid()}: {error.strerror}."
            " Set FOURSTAGE_HOME to a folder of yours."
        ) from error

    from mlflow import MlflowClient

    for noisy in ("mlflow.system_metrics", "mlflow.store.model_registry", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It logs the traceback of errors that it also raises.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
    with lock:
        # Otherwise two first processes would both create the tables.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if scheme.startswith("sqlite"):
            wait_until_free(database_file(uri))
        with _answering(uri), _with_retries(0, CONNECT_SECONDS):
            if scheme.startswith("sqlite"):
                _make_database(uri, folder)
            client = MlflowClient(tracking_uri=uri, registry_uri=uri)
            _ask(client)
        return Tracking(client, uri, folder, _home_id(folder))


def _ask(client: MlflowClient) -> None:
    """Query tracking and registry, with retries."""
    from mlflow.exceptions import MlflowException

    began = time.monotonic()
    for pause in PAUSES:
        try:
            client.search_experiments(max_results=1)
            client.search_registered_models(max_results=1)
        except MlflowException:
            if time.monotonic() + pause > began + CONNECT_SECONDS:  # no time for another try
                raise
            time.sleep(pause)
        else:
            return


def _home_id(folder: Path) -> str:
    """The home's id, created once. The caller holds the lock."""
    path = folder / HOME_ID
    if not path.exists():
        write_atomically(path, uuid4().hex + "\n")
    return path.read_text(encoding="utf-8").strip()


def _make_database(uri: str, folder: Path) -> None:
    """Create a missing database: all tables under a temporary name, then rename the file.

    MLflow creates its tables in dozens of migrations. If it is killed in one of them, it can never
    use the database again.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy.engine import make_url

    address = make_url(uri)
    database = Path(address.database or ":memory:")
    if database.name == ":memory:" or database.exists():
        return
    part = database.with_name(f".{database.name}.part")
    with open(part.with_name(f"{part.name}.lock"), "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other homes may share the database
        if database.exists():
            return
        for left in (part, part.with_name(f"{part.name}-journal")):
            left.unlink(missing_ok=True)
        made = SqlAlchemyStore(str(address.set(database=str(part))), (folder / "mlflow").as_uri())
        made.engine.dispose()
        os.replace(part, database)


@contextmanager
def _answering(uri: str) -> Iterator[None]:
    """Turn faults of MLflow's server, database or disk into an `EnvironmentFault`."""
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
    except (RequestException, SQLAlchemyError, ConnectionError, TimeoutError) as error:
        raise _unreachable(uri, error) from error
    except OSError as error:
        raise _of_files(error) from error
    except ModuleNotFoundError as error:
        raise EnvironmentFault(
            f"MLflow at {without_credentials(uri)} (MLFLOW_TRACKING_URI): the database driver"
            f" {error.name} is not installed. Install it (for PostgreSQL:"
            " psycopg2-binary), or give the address of an MLflow server; then run the same command"
            " again."
        ) from error


def _of_files(error: OSError) -> EnvironmentFault:
    """A file of a run or a model that can't be copied: no fault of the database or the server."""
    if error.errno == errno.EMFILE:
        return EnvironmentFault(
            f"{too_many_open_files()}. What is finished is kept; run the same command again."
        )
    if lack := no_space(home()):
        return EnvironmentFault(
            f"MLflow's files: {lack}. What is finished is kept; make room or set FOURSTAGE_HOME,"
            " then run the same command again."
        )
    return EnvironmentFault(
        f"a file of MLflow's can't be copied: {str(error)[:300]}. What is finished is kept. Models"
        f" are put together in {tempfile.gettempdir()} (TMPDIR), so there must be room in it, too;"
        " then run the same command again."
    )


def _unreachable(uri: str, error: BaseException) -> EnvironmentFault:
    # The root cause has the shortest message.
    cause = error
    while (further := cause.__cause__ or cause.__context__) is not None:
        cause = further
    said = f"{type(cause).__name__}: {cause}".split("\n", 1)[0]
    said = said.replace(uri, without_credentials(uri))
    if is_local(uri) and (remedy := of_another_version(said, uri)):
        return EnvironmentFault(remedy)
    asked = "MLFLOW_TRACKING_URI" in os.environ or not uri.startswith("sqlite")
    where = "MLFLOW_TRACKING_URI" if asked else "under the home"
    if uri.startswith("sqlite") and "database is locked" in said:
        return EnvironmentFault(locked(database_file(uri)))
    if uri.startswith("sqlite") and (lack := no_space(home())):
        return EnvironmentFault(
            f"MLflow's database {without_credentials(uri)}: {lack}. What is finished is kept; make"
            " room or set FOURSTAGE_HOME, then run the same command again."
        )
    if uri.startswith("sqlite"):
        return EnvironmentFault(
            f"MLflow's database {without_credentials(uri)} ({where}) can't be used: {said[:300]}"
            f" What is finished is kept. {PUT_RIGHT}"
        )
    return EnvironmentFault(
        f"MLflow at {without_credentials(uri)} ({where}) does not answer as it should:"
        f" {said[:300]}. What is finished is kept. Start the server, or set MLFLOW_TRACKING_URI to"
        " one that runs, or unset it to use SQLite under the home; then run the same command again."
    )


def database_file(uri: str) -> Path:
    """File of a SQLite address."""
    return Path(uri.split("///", 1)[-1].partition("?")[0])


@contextmanager
def _with_retries(number: int, seconds: int | None = None) -> Iterator[None]:
    """Temporarily set the number of retries and the timeout of MLflow's client."""
    brief = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": str(number)}
    if seconds is not None:
        brief["MLFLOW_HTTP_REQUEST_TIMEOUT"] = str(seconds)
    before = {name: os.environ[name] for name in brief}
    os.environ.update(brief)
    try:
        yield
    finally:
        os.environ.update(before)
