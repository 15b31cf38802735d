"""The lock of MLflow's SQLite file: wait for it, and report which process holds it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from fourstage.errors import EnvironmentFault
from fourstage.terminal import say

SECONDS = 60.0
PUT_RIGHT = (
    "Restore it from a backup, or move it away: then the next run of each recipe publishes the"
    " artifacts in the store again."
)


def wait_until_free(database: Path) -> None:
    """Wait until a database can be written, with one message. A missing file is free.

    Raises:
        EnvironmentFault: Another process still holds its lock after 60 s, or the file is not a
            database.
    """
    deadline = time.monotonic() + SECONDS
    told = False
    while database.exists() and _is_locked(database):
        if not told:
            say(f"{database} is locked by another process; waiting up to {SECONDS:.0f} s")
            told = True
        elif time.monotonic() > deadline:
            raise EnvironmentFault(locked(database))
        time.sleep(0.5)


def locked(database: Path) -> str:
    """Message that a database is locked, with the holders that this user may see."""
    holders = _open_in(database)
    who = (
        f"It is open in {', '.join(holders)}."
        if holders
        else f"No process of this user has it open; `lsof {database}` as root shows the process."
    )
    return (
        f"MLflow's database {database} is locked by another process. {who} Wait until it finishes,"
        " or end it, then run the same command again; what is finished is kept."
    )


def _is_locked(database: Path) -> bool:
    """Whether another process holds the database's write lock."""
    try:
        with closing(sqlite3.connect(database, timeout=1, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            return True
        raise EnvironmentFault(
            f"MLflow's database {database} can't be used: {error}. {PUT_RIGHT}"
        ) from error
    return False


def _open_in(database: Path) -> list[str]:
    """Other processes that have a file open, among those visible to this user."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == psutil.Process().pid:
                continue
            if any(Path(file.path) == database.resolve() for file in process.open_files()):
                found.append(f"process {process.pid} ({process.name()})")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
