"""The checks of ``doctor``: each finding is fine, a warning or wrong, with what to do."""

from __future__ import annotations

import fcntl
import os
import platform
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import (
    PackageNotFoundError,
    metadata,
    packages_distributions,
    requires,
    version,
)
from importlib.util import find_spec
from pathlib import Path

from fourstage.accelerator import backend, gpus, has_libraries
from fourstage.command.required_servers import fault_of, named_servers
from fourstage.errors import EnvironmentFault
from fourstage.settings import (
    BACKENDS,
    PACKAGES,
    PRIVATE_ENVIRONMENT,
    REPOSITORY,
    data_folders,
    home,
    is_clone,
    mlflow_uri,
    refuse_backend,
    without_credentials,
)

LEAST_DISK_GB = 2.0
SERVER_SECONDS = 5.0
FINE, WARNING, WRONG = "fine", "warning", "wrong"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: Name of the check.
        status: ``fine``, ``warning`` or ``wrong``.
        found: What was found, and what to do unless it is fine.
    """

    check: str
    status: str
    found: str


def diagnose() -> Iterator[Finding]:
    """Run all checks, cheap ones first."""
    wanted_python, dependencies = _requirements()
    yield _python(wanted_python)
    yield from _versions(dependencies)
    yield _text_matches_tensorflow()
    yield _our_packages()
    yield _backend()
    yield _gpu()
    yield _home()
    yield _privacy()
    yield _disk()
    yield from _data()
    yield _telemetry()
    yield _locks()
    yield _orphans()
    servers = list(_servers())
    yield from servers
    if all(found.status != WRONG for found in servers):
        yield _champions()


def _requirements() -> tuple[str, list[str]]:
    """The Python versions and the packages we need: of the clone, else of the installed wheel."""
    if is_clone():
        file = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
        return file["project"]["requires-python"], file["project"]["dependencies"]
    needed = [line for line in requires("fourstage") or () if "extra ==" not in line]
    return metadata("fourstage")["Requires-Python"], needed


def _python(wanted: str) -> Finding:
    from packaging.specifiers import SpecifierSet

    here = platform.python_version()
    if SpecifierSet(wanted).contains(here):
        return Finding("python", FINE, here)
    return Finding("python", WRONG, f"{here}; tensorflow-text has wheels for {wanted}")


def _versions(dependencies: list[str]) -> Iterator[Finding]:
    """Compare each installed dependency with its version range in pyproject.toml."""
    from packaging.requirements import Requirement

    right = 0
    for line in dependencies:
        wanted = Requirement(line)
        try:
            there = version(wanted.name)
        except PackageNotFoundError:
            yield Finding(wanted.name, WRONG, f"not installed; wanted {wanted.specifier}")
            continue
        if wanted.specifier.contains(there, prereleases=True):
            right += 1
        else:
            yield Finding(
                wanted.name,
                WRONG,
                f"{there}; wanted {wanted.specifier}: pip install -r requirements.lock",
            )
    yield Finding("packages", FINE, f"{right} of {len(dependencies)} within their caps")


def _text_matches_tensorflow() -> Finding:
    try:
        tensorflow, text = version("tensorflow"), version("tensorflow-text")
    except PackageNotFoundError as error:
        return Finding("tensorflow-text", WRONG, f"{error.name} is not installed")
    if tensorflow.split(".")[:2] == text.split(".")[:2]:
        return Finding("tensorflow-text", FINE, f"{text} with tensorflow {tensorflow}")
    return Finding(
        "tensorflow-text",
        WRONG,
        f"{text} with tensorflow {tensorflow}: the first two numbers must be the same",
    )


def _our_packages() -> Finding:
    """``models`` and ``tasks`` are common names, so others may shadow or overwrite ours."""
    for name in PACKAGES:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or not origin.is_relative_to(REPOSITORY):
            return Finding(
                "own packages",
                WRONG,
                f"`{name}` is {origin or 'missing'}, not ours; start Python elsewhere or "
                "take that folder off PYTHONPATH",
            )
    owners = packages_distributions()
    for name in (*PACKAGES, "recipes"):
        if others := sorted(set(owners.get(name, ())) - {"fourstage"}):
            return Finding(
                "own packages",
                WRONG,
                f"{', '.join(others)} installs `{name}` too, and pip lets the later one overwrite"
                " files; install Fourstage into an environment of its own",
            )
    return Finding("own packages", FINE, f"all {len(PACKAGES)} from {REPOSITORY}")


def _backend() -> Finding:
    try:
        refuse_backend()
    except EnvironmentFault as error:
        return Finding("keras backend", WRONG, str(error))
    return Finding("keras backend", FINE, backend())


def _gpu() -> Finding:
    """A GPU that is not used is not missed: training on the CPU is only slow."""
    name = backend()
    try:
        found = gpus("name")
    except subprocess.TimeoutExpired as error:
        return Finding("gpu", WARNING, f"nvidia-smi did not answer within {error.timeout:g} s")
    if not found:
        return Finding("gpu", FINE, "none")
    if has_libraries(name):
        return Finding("gpu", FINE, f"{', '.join(found)}, with {name}")
    others = " or ".join(
        f"{package} with KERAS_BACKEND={each}" for each, package in BACKENDS.items()
    )
    return Finding(
        "gpu",
        WARNING,
        f"{', '.join(found)}, but {name} has no CUDA libraries from pip, so that training probably"
        f" uses the CPU: pip install {others}",
    )


def _home() -> Finding:
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(
            "home",
            WRONG,
            f"{folder} can't be written by user {os.getuid()} ({error.strerror}); "
            "set FOURSTAGE_HOME",
        )
    return Finding("home", FINE, str(folder))


def _privacy() -> Finding:
    """What older versions left open to other users: logs of runs, and answers to rows."""
    from tasks.store.predictions import WORD_REGIONS

    folder, store = home(), home() / "store"
    if not _is_open(folder):
        return Finding("privacy", FINE, "the home is for its owner alone")
    todo = []
    if _is_open(folder / "prefect"):
        todo.append(f"chmod go= {shlex.quote(str(folder / 'prefect'))}")
    for name in ("*.parquet", WORD_REGIONS):
        if any(map(_is_open, store.glob(f"*/*/{name}"))):
            todo.append(f"find {shlex.quote(str(store))} -name '{name}' -exec chmod go= {{}} +")
    if not todo:
        return Finding("privacy", FINE, "logs and predictions are for their owner alone")
    said = "an older version let other users read logs or predictions; to end that"
    return Finding("privacy", WARNING, f"{said}: {'; '.join(todo)}")


def _is_open(path: Path) -> bool:
    """Whether a file or folder is there and its mode allows something to others than its owner."""
    return path.exists() and bool(path.stat().st_mode & 0o077)


def _disk() -> Finding:
    folder = home()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    if free >= LEAST_DISK_GB:
        return Finding("disk", FINE, f"{free:.1f} GB free")
    return Finding("disk", WARNING, f"{free:.1f} GB free; a run may need {LEAST_DISK_GB:.0f}")


def _data() -> Iterator[Finding]:
    for folder in data_folders():
        if folder.is_dir():
            yield Finding("FOURSTAGE_DATA", FINE, str(folder))
        else:
            yield Finding("FOURSTAGE_DATA", WARNING, f"{folder} is not a folder")


def _telemetry() -> Finding:
    on = [
        name
        for name, value in PRIVATE_ENVIRONMENT.items()
        if any(word in name for word in ("TRACK", "ANALYTICS", "TELEMETRY"))
        and os.environ.get(name) != value
    ]
    if not on:
        return Finding("telemetry", FINE, "off")
    wanted = ", ".join(f"{name}={PRIVATE_ENVIRONMENT[name]}" for name in on)
    return Finding("telemetry", WARNING, f"set otherwise by you; off is {wanted}")


def _locks() -> Finding:
    """Locks. The kernel releases those of dead writers, so a held lock has a living holder."""
    held = []
    locks = sorted((home() / "store").glob("*/*.lock"))
    for path in locks:
        with open(path, encoding="utf-8", errors="replace") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(f"{path.parent.name} {path.stem[:12]} by {stream.read(80).strip()}")
    if held:
        return Finding("locks", WARNING, f"held now: {'; '.join(held[:5])}")
    return Finding("locks", FINE, f"none held ({len(locks)} free)")


def _orphans() -> Finding:
    """Runs that a kill left RUNNING; the next run of their recipe closes them."""
    from tasks.orchestration.processes import PROCESS, alive
    from tasks.tracking.connection import database_file

    database = database_file(mlflow_uri()).absolute()
    if not mlflow_uri().startswith("sqlite:") or not database.is_file():
        return Finding("orphan runs", FINE, "none here")
    try:
        with closing(
            sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=2)
        ) as mlflow:
            rows = mlflow.execute(
                "select run_uuid, key, value from runs left join tags using (run_uuid)"
                " where status = 'RUNNING'"
            ).fetchall()
    except sqlite3.Error as error:
        return Finding("orphan runs", WARNING, f"{database.name} can't be read: {error}")
    tags: dict[str, dict[str, str]] = {}
    for run, key, value in rows:
        tags.setdefault(run, {})[key] = value
    dead = [run for run, of_run in tags.items() if PROCESS in of_run and not alive(of_run)]
    going_on = f"; {len(tags) - len(dead)} going on" if len(tags) > len(dead) else ""
    if not dead:
        return Finding("orphan runs", FINE, f"none{going_on}")
    said = f"{len(dead)} RUNNING without a process; the next run closes them{going_on}"
    return Finding("orphan runs", WARNING, said)


def _champions() -> Finding:
    """Models whose champion was removed (their next version waits) or has lost its files."""
    from tasks.registry.versions import without_champion, without_files
    from tasks.tracking.connection import connect

    check, uri = "champions", mlflow_uri()
    if uri == f"sqlite:///{home() / 'mlflow.db'}" and not (home() / "mlflow.db").is_file():
        return Finding(check, FINE, "no model is registered here")
    try:
        tracking = connect()
        found, lost = without_champion(tracking), without_files(tracking)
    except EnvironmentFault as fault:  # which would end every run
        return Finding(check, WRONG, f"not known: {fault}")
    if lost:
        told = "; ".join(f"{name} {why}" for name, why in lost.items())
        remedy = "put them back or, where the home was moved, put a link to it at its old path"
        return Finding(check, WRONG, f"{told}. No version can replace it: {remedy}")
    if not found:
        return Finding(check, FINE, "no model has lost its champion")
    told = "; ".join(
        f"{name} has no champion while version {previous} is the previous one"
        for name, previous in found.items()
    )
    remedy = "`fourstage promote NAME --version N --approve WHY` makes one"
    return Finding(check, WARNING, f"{told}. {remedy}; until then new versions wait")


def _servers() -> Iterator[Finding]:
    if not os.environ.get("PREFECT_API_URL"):
        yield Finding("prefect", FINE, "no server asked for; flows bring their own")
    for server, address in named_servers():
        shown = without_credentials(address)
        fault = fault_of(server, address, seconds=SERVER_SECONDS)
        found = f"{shown} {fault}. {server.remedy}" if fault else shown
        yield Finding(server.name.lower(), WRONG if fault else FINE, found)
    uri = mlflow_uri()
    if uri.startswith("sqlite:"):
        yield Finding("mlflow", FINE, uri)
    elif not uri.startswith(("http://", "https://")):
        yield _database(uri)


def _database(uri: str) -> Finding:
    """Whether a database server accepts a connection; users install its driver themselves."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    shown = without_credentials(uri)
    try:
        with create_engine(uri).connect():
            pass
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        reason = str(error).split("\n", 1)[0].replace(uri, shown)
        return Finding(
            "mlflow",
            WRONG,
            f"{shown}: {reason}; start it, install its driver (PostgreSQL: psycopg2-binary) or"
            " change MLFLOW_TRACKING_URI",
        )
    return Finding("mlflow", FINE, shown)
