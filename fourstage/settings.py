"""Where home, data and project folders are, and the environment every process of ours runs in."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from fourstage.errors import EnvironmentFault

REPOSITORY = Path(__file__).resolve().parent.parent

OWNER = "FOURSTAGE_OWNER"
TAG = "fourstage"  # of our runs on a Prefect server, and of all our deployments there
PAGES = "mlflow.address"  # file of the home: where `fourstage up` last showed its MLflow
WEBHOOK = "FOURSTAGE_WEBHOOK"  # where notifications.yaml sends its messages
EMBEDDED = "FOURSTAGE_EMBEDDED_PREFECT"  # set where PREFECT_API_URL is the server a run brought

# The word `true`: Prefect accepts 1/true/yes, MLflow only `true`.
PRIVATE_ENVIRONMENT = {
    "DO_NOT_TRACK": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SKIP_PIP_REQUIREMENTS_CHECK": "true",
    "MLFLOW_UV_AUTO_DETECT": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # a dozen idle processes, none used here
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "KERAS_BACKEND": "tensorflow",
    # Seconds; automations.yaml takes a run for dead after ten of them.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    # A first start makes the database: 15 s here, more than a minute on a slow disk.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
}


def make_private() -> None:
    """Turn telemetry off and quiet the frameworks, wherever the user has not said otherwise."""
    for name, value in PRIVATE_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    _leave_loopback_to_itself()
    # Prefect and others look for a home as they are imported; a container's user may have none.
    if os.path.expanduser("~") == "~":
        os.environ["HOME"] = str(home())
    # What this process starts, and a kill leaves behind, says by this whose it was.
    os.environ[OWNER] = str(os.getpid())
    # Prefect reads its home on import; under ours, one folder holds everything a run leaves behind.
    os.environ.setdefault("PREFECT_HOME", str(home() / "prefect"))


def _leave_loopback_to_itself() -> None:
    """Ask servers of this machine directly, where a proxy leads out of it."""
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
        said = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        if "*" not in said:
            direct = [name.strip() for name in said.split(",") if name.strip()]
            wanted = ",".join(dict.fromkeys([*direct, "127.0.0.1", "localhost"]))
            os.environ["no_proxy"] = os.environ["NO_PROXY"] = wanted


def refuse_optimised() -> None:
    """Refuse an interpreter that leaves out assertions or docstrings.

    Packages that we use read their own docstrings as they are imported, and guard with assertions.

    Raises:
        EnvironmentFault: If it was started with ``-O`` or ``PYTHONOPTIMIZE``.
    """
    if sys.flags.optimize:
        said = os.environ.get("PYTHONOPTIMIZE", sys.flags.optimize)
        raise EnvironmentFault(
            f"Python was started with -O or PYTHONOPTIMIZE={said}, which leaves out assertions and"
            " docstrings that packages used here need. Unset PYTHONOPTIMIZE, and leave -O out."
        )


def make_home() -> None:
    """Make the home's folders.

    Raises:
        EnvironmentFault: If they can't be made or written, naming the folder and the user.
    """
    for folder in (home(), home() / "store", Path(os.environ["PREFECT_HOME"])):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise EnvironmentFault(
                f"the folder {folder} can't be written by user {os.getuid()} ({error.strerror})."
                " Set FOURSTAGE_HOME to a folder of yours."
            ) from error


def home() -> Path:
    """Folder of everything Fourstage writes: ``$FOURSTAGE_HOME``, else ``var`` in the project."""
    configured = os.environ.get("FOURSTAGE_HOME")
    return _path(configured) if configured else project() / "var"


def project() -> Path:
    """The user's project: the nearest folder above that ``fourstage new`` made, else the clone."""
    here = current_folder()
    for folder in (here, *here.parents):
        if (folder / "fourstage.project").is_file():
            return folder
    return REPOSITORY


def current_folder() -> Path:
    """Where the command was typed; the root where that folder was removed meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)


def _path(said: str) -> Path:
    """A folder that a variable names; ``~`` of somebody unknown stays as it is."""
    return current_folder() / os.path.expanduser(said)


def search_folders(recipe: Path | None = None) -> list[Path]:
    """Project folders in which recipes, sources, suites and model parts are looked for first.

    A recipe brings its own folder along (and the one above, where it lies in ``recipes/``), so that
    a recipe and its ``sources/`` can be moved together. The built-in folders are not listed.
    """
    folders: list[Path] = []
    if recipe is not None:
        beside = recipe.absolute().parent
        folders.append(beside)
        if beside.name == "recipes":
            folders.append(beside.parent)
    folders.append(project())
    return list(dict.fromkeys(folder for folder in folders if folder != REPOSITORY))


def data_folders() -> list[Path]:
    """Folders of ``$FOURSTAGE_DATA`` (separated like ``$PATH``), in order."""
    configured = os.environ.get("FOURSTAGE_DATA", "")
    return [_path(part) for part in configured.split(os.pathsep) if part]


def mlflow_uri() -> str:
    """Tracking store: ``$MLFLOW_TRACKING_URI``, else SQLite under the home.

    Raises:
        EnvironmentFault: If the home's name is none that an address can hold.
    """
    if named := os.environ.get("MLFLOW_TRACKING_URI"):
        return named
    if "?" in str(home()):
        raise EnvironmentFault(
            f"the home {home()} has a question mark in its name, where an address of SQLite ends."
            " Set FOURSTAGE_HOME to a folder of another name."
        )
    return f"sqlite:///{home() / 'mlflow.db'}"


def without_credentials(address: str) -> str:
    """A server's address as it may be shown.

    A database takes all before the ``@`` for a login, whose password may hold what else ends the
    name of a host, and takes another one from behind the question mark.
    """
    scheme, mark, rest = address.partition("://")
    if not mark or scheme.startswith("sqlite"):
        return address
    if scheme in ("http", "https"):
        with suppress(ValueError):  # none that could be asked
            parts = urlsplit(address)
            _ = parts.port
            return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return scheme + mark + rest.rpartition("@")[2].partition("?")[0]
