"""The Prefect server that a run brings along where the environment names none.

Prefect would start one by itself, but late, when nothing else can be done meanwhile, and in our
process group: there Ctrl-C ends the server before the run can say how it ended.
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
from contextlib import ExitStack, contextmanager
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
LINES = 4  # of a server's log, which ends with what was wrong
# What Prefect itself starts, with its marks: no pages, and only the services that a run needs.
SERVER = ("uvicorn", "--factory", "prefect.server.api.server:create_app", "--lifespan", "on")
# Not the current folder, whose files may have the names of packages.
ELSEWHERE = ("--app-dir", str(REPOSITORY))
MARKS = {
    "PYTHONSAFEPATH": "1",
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
}

_until_the_end = ExitStack()


def server_named() -> bool:
    """Whether the environment names a server, which then is to have a record of every run.

    One that a run of this process has brought along is none.
    """
    return bool(os.environ.get("PREFECT_API_URL")) and not os.environ.get(EMBEDDED)


@cache
def bring_prefect() -> Callable[[], None]:
    """Start the server, once a process, where none is named; to be called before Prefect's import.

    Returns:
        Waits until it answers; what is imported before that call costs no time of its own.
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
        pass_fds=(lock.fileno(),),  # where we are killed, it has the lock until the server ends
    )
    os.close(said)
    # Registered before Prefect's own, so that it comes last: they still have things to send.
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
    """Have a server at the end of the block, which imports what the flows need meanwhile."""
    with activity("getting ready: Prefect's server, libraries"):
        ready = bring_prefect()
        yield
        ready()


@contextmanager
def starting_prefect() -> Iterator[IO[str]]:
    """Start a server as the only process of this home that does, and wait until it answers.

    Two that find an old database, or none, would both migrate it, and one of them would fail. And
    where the first tables are cut off, the next server stumbles over what is there: until its
    server answers, a new database has a mark, by which the next start throws it away. It holds
    nothing yet.

    Yields:
        The lock; whoever inherits it holds it too, until the server answers.
    """
    database = Path(os.environ["PREFECT_HOME"]) / "prefect.db"
    mark = database.with_name("prefect.db.unfinished")
    with open(home() / "prefect.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever has it waits for a server with a deadline
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
    elif last := log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LINES:]:
        why = ". Its last words:\n  " + "\n  ".join(last) + f"\nAll of them are in {log}"
    else:
        why = f" within {seconds:.0f} s, without a word" if guard.poll() is None else " silently"
    raise EnvironmentFault(
        f"Prefect's server of this run {how}{why}. Then run the same command again."
    )


def _tag_runs() -> None:
    """All runs of this process bear our tag, by which the server's automations know them."""
    from prefect import tags

    _until_the_end.enter_context(tags(TAG))


def _mark_runs() -> None:
    """All runs of this process begin with its mark, and send no heartbeats.

    By the mark the next start finds what a kill left RUNNING. Nobody hears heartbeats here, and at
    its end each flow would wait up to a second for the thread that sends them.
    """
    from prefect import tags
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    from tasks.orphans import mark

    _until_the_end.enter_context(tags(mark()))
    _until_the_end.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))


def _end(guard: subprocess.Popen, log: Path) -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    try:
        guard.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        guard.kill()
    if not log.stat().st_size:
        log.unlink()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]
