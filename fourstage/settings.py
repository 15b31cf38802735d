"""The home, data and project folders, and the environment of all our processes."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from fourstage.errors import EnvironmentFault

REPOSITORY = Path(__file__).resolve().parent.parent
# All that a wheel installs, except recipes, which are read by path and never imported.
PACKAGES = ("fourstage", "flows", "tasks", "models", "corpora", "data_contracts")
# Links to files at the top of the clone, which stand in no package; a wheel has copies.
SHIPPED = Path(__file__).resolve().parent / "command" / "shipped"

OWNER = "FOURSTAGE_OWNER"
TAG = "fourstage"  # tag of our runs and deployments on a Prefect server
PAGES = "mlflow.address"  # file in the home: the last address of MLflow under `fourstage up`
WEBHOOK = "FOURSTAGE_WEBHOOK"  # where notifications.yaml sends its messages
EMBEDDED = "FOURSTAGE_EMBEDDED_PREFECT"  # set if PREFECT_API_URL is a run's temporary server

# Backends of Keras, and what pip installs each as for an NVIDIA GPU.
BACKENDS = {"tensorflow": "tensorflow[and-cuda]", "jax": "jax[cuda13]"}

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
    # Seconds; automations.yaml considers a run dead after ten missed heartbeats.
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    # The first start creates the database: 15 s here, more than a minute on a slow disk.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
}


def make_private() -> None:
    """Turn telemetry off and quiet the frameworks, unless the user has set otherwise."""
    for name, value in PRIVATE_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    _add_xla_flag("--xla_gpu_deterministic_ops", "true")
    _leave_loopback_to_itself()
    # Prefect and others need $HOME when they are imported; a container's user may have none.
    if os.path.expanduser("~") == "~":
        os.environ["HOME"] = str(home())
    _fix_locations()
    # Identifies the owner of child processes that survive a kill of this one.
    os.environ[OWNER] = str(os.getpid())
    # Prefect reads its home on import. Under ours, one folder holds everything a run leaves behind.
    os.environ.setdefault("PREFECT_HOME", str(home() / "prefect"))


def _fix_locations() -> None:
    """Make relative locations absolute: the current folder may change, and children have others."""
    for name in ("FOURSTAGE_HOME", "PREFECT_HOME"):
        if said := os.environ.get(name):
            os.environ[name] = str(_path(said))
    if folders := data_folders():
        os.environ["FOURSTAGE_DATA"] = os.pathsep.join(map(str, folders))
    scheme, mark, place = os.environ.get("MLFLOW_TRACKING_URI", "").partition(":///")
    if mark and scheme == "sqlite" and not place.startswith((os.sep, ":memory:")):
        os.environ["MLFLOW_TRACKING_URI"] = f"{scheme}{mark}{current_folder() / place}"


def enter_project(folder: Path) -> None:
    """Make a project the current folder. Prefect's folder follows the home, unless it is named."""
    follows = os.environ.get("PREFECT_HOME") == str(home() / "prefect")
    os.chdir(folder)
    if follows:
        os.environ["PREFECT_HOME"] = str(home() / "prefect")


def _add_xla_flag(flag: str, value: str) -> None:
    """Set a flag of XLA, for TensorFlow and JAX alike, unless the user has.

    Without deterministic operations a GPU adds up gradients in the order in which its threads
    finish: a seed then gives other bits each time. A value without a dash names a file of flags,
    which is left alone.
    """
    said = os.environ.get("XLA_FLAGS", "").strip()
    if flag not in said and (not said or said.startswith("-")):
        os.environ["XLA_FLAGS"] = f"{said} {flag}={value}".strip()


def _leave_loopback_to_itself() -> None:
    """Exempt servers on this machine from a configured proxy."""
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
        said = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        if "*" not in said:
            direct = [name.strip() for name in said.split(",") if name.strip()]
            wanted = ",".join(dict.fromkeys([*direct, "127.0.0.1", "localhost"]))
            os.environ["no_proxy"] = os.environ["NO_PROXY"] = wanted


def refuse_optimised() -> None:
    """Refuse an interpreter that strips assertions or docstrings.

    Packages that we use read their own docstrings on import and rely on assertions.

    Raises:
        EnvironmentFault: Python was started with ``-O`` or ``PYTHONOPTIMIZE``.
    """
    if sys.flags.optimize:
        said = os.environ.get("PYTHONOPTIMIZE", sys.flags.optimize)
        raise EnvironmentFault(
            f"Python was started with -O or PYTHONOPTIMIZE={said}, which strips assertions and"
            " docstrings that packages used here need. Unset PYTHONOPTIMIZE, and leave -O out."
        )


def refuse_backend() -> None:
    """Refuse a backend of Keras that we don't know or that is not installed.

    Raises:
        EnvironmentFault: ``KERAS_BACKEND`` names such a one.
    """
    name = os.environ.get("KERAS_BACKEND", "tensorflow")
    if name not in BACKENDS:
        raise EnvironmentFault(
            f"KERAS_BACKEND: expected {' or '.join(BACKENDS)}, got {name[:40]!r}"
        )
    if find_spec(name) is None:
        raise EnvironmentFault(
            f"KERAS_BACKEND is {name}, which is not installed: pip install {name}, or"
            f" {BACKENDS[name]} for an NVIDIA GPU"
        )


def refuse_shadowed() -> None:
    """Refuse another project's packages under the names of ours.

    ``models`` and ``tasks`` are names that many projects have. Where both are installed, Python
    takes whichever comes first on its path, perhaps file by file.

    Raises:
        EnvironmentFault: Python would import another ``models``, ``tasks`` and so on.
    """
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None or Path(spec.origin).parents[1] != REPOSITORY:
            names = ", ".join(PACKAGES[1:])
            raise EnvironmentFault(
                f"Python finds another package {name!r} first: {spec and spec.origin}."
                f" Fourstage has the packages {names}, so it needs an environment of"
                " its own: install it into a fresh virtual environment, and take the other"
                " project's folder out of PYTHONPATH."
            )


def make_home() -> None:
    """Create the folders of the home.

    Prefect's holds what all runs have logged and the address of notifications, so it is for its
    owner alone, as Prefect itself would create it.

    Raises:
        EnvironmentFault: One cannot be created or written; the message names it and the user.
    """
    prefect = Path(os.environ["PREFECT_HOME"])
    for folder, mode in ((home(), 0o777), (home() / "store", 0o777), (prefect, 0o700)):
        try:
            folder.mkdir(mode, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise EnvironmentFault(
                f"the folder {folder} can't be written by user {os.getuid()} ({error.strerror})."
                " Set FOURSTAGE_HOME to a folder of yours."
            ) from error


def home() -> Path:
    """Folder that everything is written to: ``$FOURSTAGE_HOME``, else ``var`` in the project.

    An installed wheel outside a project has ``var`` in the current folder, not in site-packages.
    """
    if configured := os.environ.get("FOURSTAGE_HOME"):
        return _path(configured)
    own = project()
    return (own if own != REPOSITORY or is_clone() else current_folder()) / "var"


def is_clone() -> bool:
    """Whether this code is a clone, whose folder has more than packages, or an installed wheel."""
    return (REPOSITORY / "prefect.yaml").is_file()


def project() -> Path:
    """The user's project: the nearest parent folder made by ``fourstage new``, else ours."""
    here = current_folder()
    for folder in (here, *here.parents):
        if (folder / "fourstage.project").is_file():
            return folder
    return REPOSITORY


def current_folder() -> Path:
    """The current folder; the root if it has been deleted in the meantime."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)


def _path(said: str) -> Path:
    """The folder that a variable names; ``~`` of an unknown user is left unexpanded."""
    return current_folder() / os.path.expanduser(said)


def search_folders(recipe: Path | None = None) -> list[Path]:
    """Project folders in which recipes, sources, suites and model parts are searched first.

    A recipe adds its own folder (and the parent, if that folder is ``recipes/``), so that a recipe
    and its ``sources/`` can be moved together. The built-in folders are not listed.
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
        EnvironmentFault: The name of the home cannot be part of an address.
    """
    if named := os.environ.get("MLFLOW_TRACKING_URI"):
        return named
    if "?" in str(home()):
        raise EnvironmentFault(
            f"the home {home()} has a question mark in its name, which ends an address of SQLite."
            " Set FOURSTAGE_HOME to a folder with another name."
        )
    return f"sqlite:///{home() / 'mlflow.db'}"


def without_credentials(address: str) -> str:
    """The address of a server without credentials, for messages.

    In the address of a database everything before the ``@`` is the login; its password may contain
    characters that would end a host name. Further credentials may follow the question mark.
    """
    scheme, mark, rest = address.partition("://")
    if not mark or scheme.startswith("sqlite"):
        return address
    if scheme in ("http", "https"):
        with suppress(ValueError):  # not a valid address
            parts = urlsplit(address)
            _ = parts.port
            return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return scheme + mark + rest.rpartition("@")[2].partition("?")[0]
