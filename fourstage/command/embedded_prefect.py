"""The temporary Prefect server of a run, used if the environment names no server.

Prefect could start one itself, but only later, when nothing can be done in parallel, and in our
process group, where Ctrl-C would end the server before the run can report how it ended.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from fourstage.activity import activity
from fourstage.command.login import new_login
from fourstage.errors import EnvironmentFault
from fourstage.settings import EMBEDDED, REPOSITORY, TAG, home
from fourstage.space import no_space
from fourstage.terminal import new_log

GUARD = Path(__file__).with_name("guard.py")
LOOPBACK = "127.0.0.1"
STOP_SECONDS = 10
UNKNOWN_MIGRATION = "Can't locate revision"  # in the log of a Prefect older than its database
LINES = 4  # shown from the end of a server's log, which says what was wrong
# The server that Prefect itself would start: without pages, with only the services a run needs.
SERVER = ("uvicorn", "--factory", "prefect.server.api.server:create_app", "--lifespan", "on")
# Not the current folder, whose files may shadow packages.
ELSEWHERE = ("--app-dir", str(REPOSITORY))
MARKS = {
    "PYTHONSAFEPATH": "1",
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
}

_until_the_end = ExitStack()


def server_named() -> bool:
    """Whether the environment names a server, which then records every run.

    A temporary server of this process does not count.
    """
    return bool(os.environ.get("PREFECT_API_URL")) and not os.environ.get(EMBEDDED)


@cache
def bring_prefect() -> Callable[[], None]:
    """Start a server unless one is named; once per process, and before Prefect is imported.

    Returns:
        A function that waits until the server answers. Imports before that call run in parallel
        with the start.
    """
    if os.environ.get("PREFECT_API_URL"):
        return _tag_runs
    starting = ExitStack()
    lock = starting.enter_context(starting_prefect())
    port = _free_port()
    login = new_login()  # other users of the machine can reach it, too
    arguments = ("--host", LOOPBACK, "--port", str(port), "--log-level", "error")
    log = new_log("prefect")
    log.parent.mkdir(parents=True, exist_ok=True)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    guard = subprocess.Popen(
        [sys.executable, "-I", str(GUARD), sys.executable, "-m", *SERVER, *ELSEWHERE, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=said,
        env=os.environ | MARKS | {"PREFECT_SERVER_API_AUTH_STRING": login},
        start_new_session=True,
        pass_fds=(lock.fileno(),),  # if we are killed, it keeps the lock until the server ends
    )
    os.close(said)
    # Registered before Prefect's own handlers, so that it runs after them: they still send events.
    atexit.register(_end, guard, log)
    address = f"http://{LOOPBACK}:{port}/api"
    os.environ["PREFECT_API_URL"] = address
    os.environ["PREFECT_API_AUTH_STRING"] = login
    os.environ[EMBEDDED] = "1"

    def ready() -> None:
        _wait_for(guard, f"{address}/health", log)
        starting.close()
        _mark_runs()

    return ready


@contextmanager
def prefect_ready() -> Iterator[None]:
    """Start a server while the block imports what the flows need; it answers at the block's end."""
    with activity("getting ready: Prefect's server, libraries"):
        ready = bring_prefect()
        yield
        ready()


@contextmanager
def starting_prefect() -> Iterator[IO[str]]:
    """Start a server under a lock beside its database, and wait until it answers.

    Two servers that find an old database, or none, would both migrate it, and one of them would
    fail; they may be of two homes, where PREFECT_HOME is set. If the first migration is cut off,
    the next server fails on the partial database. So a new, still empty database has a marker file
    until its server answers; the next start deletes a database with a marker.

    Yields:
        The lock; a process that inherits it holds it, too, until the server answers.
    """
    database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    mark = database.with_name("prefect.db.unfinished")
    with open(database.with_name("prefect.db.lock"), "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its holder waits for a server, with a deadline
        if mark.exists():
            for end in ("", "-wal", "-shm", "-journal"):
                database.with_name(database.name + end).unlink(missing_ok=True)
        elif not database.exists():
            mark.touch()
        yield lock
        mark.unlink(missing_ok=True)
        fcntl.flock(lock, fcntl.LOCK_UN)


def _wait_for(guard: subprocess.Popen, address: str, log: Path) -> None:
    seconds = float(os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"])
    deadline = time.monotonic() + seconds
    while guard.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    how = "did not start" if guard.poll() is None else "ended as it started"
    if lack := no_space(home()):
        why = f": {lack}; make room"
    elif UNKNOWN_MIGRATION in (said := log.read_text(encoding="utf-8", errors="replace")):
        database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
        why = (
            f": a newer Prefect has used its database {database}. Install that version again (pip"
            " install -r requirements.lock), or move the file away: it has the history of flow runs"
            " and what was deployed there, no model and no data"
        )
    elif last := said.strip().splitlines()[-LINES:]:
        why = ". Its last words:\n  " + "\n  ".join(last) + f"\nAll of them are in {log}"
    else:
        why = f" within {seconds:.0f} s, without a word" if guard.poll() is None else " silently"
    raise EnvironmentFault(
        f"Prefect's server of this run {how}{why}. Then run the same command again."
    )


def _tag_runs() -> None:
    """Give all runs of this process our tag, which the server's automations look for."""
    from prefect import tags

    _until_the_end.enter_context(tags(TAG))


def _mark_runs() -> None:
    """Give all runs of this process a mark, and turn heartbeats off.

    The mark lets the next start find runs that a kill left RUNNING. Nothing listens to heartbeats
    here, and each flow would wait up to a second at its end for the thread that sends them.
    """
    from prefect import tags
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    from tasks.orchestration.processes import mark

    _until_the_end.enter_context(tags(mark()))
    _until_the_end.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))


def _end(guard: subprocess.Popen, log: Path) -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    try:
        guard.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        guard.kill()
    with suppress(FileNotFoundError):  # `gc --keep 0` has taken it away
        if not log.stat().st_size:
            log.unlink()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]
