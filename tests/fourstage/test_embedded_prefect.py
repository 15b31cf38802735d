"""The server that a run brings along: in one home, one starts at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from fourstage.command import embedded_prefect
from fourstage.command.embedded_prefect import starting_prefect
from fourstage.errors import EnvironmentFault
from fourstage.settings import REPOSITORY

BRING = """
import os, sys, urllib.error, urllib.request
from fourstage.settings import make_private, make_home
make_private()
make_home()
from fourstage.command.embedded_prefect import bring_prefect
bring_prefect()()
try:
    urllib.request.urlopen(os.environ["PREFECT_API_URL"] + "/admin/version")
    sys.exit("it answers anybody")
except urllib.error.HTTPError as error:
    assert error.code == 401
from prefect.client.orchestration import get_client
with get_client(sync_client=True) as client:
    client.read_flow_runs()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "a home's"
    folder.mkdir()
    return folder


def bringing(
    home: Path, prefect: Path, folder: Path = REPOSITORY, stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """A process that ends when its server has answered it, and nobody else."""
    environment = {**os.environ, "FOURSTAGE_HOME": str(home)}
    environment["PREFECT_HOME"] = str(prefect)
    environment["PYTHONPATH"] = str(REPOSITORY)
    environment.pop("PREFECT_API_URL", None)
    command = [sys.executable, "-P", "-c", BRING]
    return subprocess.Popen(command, env=environment, cwd=folder, stderr=stderr)


def test_of_two_starts_at_once_one_makes_anew_what_a_kill_left_half_made(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Some of Prefect's migrations are no transactions, and can't be made again or twice at once.

    The two are of two homes; they begin in a folder whose files have names of packages, which are
    not imported.
    """
    for name in ("prefect.py", "secrets.py", "uvicorn.py"):
        (tmp_path / name).write_text("raise SystemExit('this is not the package')")
    database = tmp_path / "prefect" / "prefect.db"
    killed = bringing(home, database.parent)
    while not database.exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    with open(database.with_name("prefect.db.lock"), "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its server has ended
        plant(database)
        both = [bringing(each, database.parent, tmp_path) for each in (home, tmp_path / "other")]
        time.sleep(3)
        assert [process.poll() for process in both] == [None, None]
        assert has_planted(database)
    assert [process.wait(180) for process in both] == [0, 0]
    assert not has_planted(database)
    # One that is whole is left as it is.
    plant(database)
    monkeypatch.setenv("PREFECT_HOME", str(database.parent))
    with starting_prefect():
        assert has_planted(database)


def test_a_server_that_ends_as_it_starts_is_told_from_one_that_is_slow(home, monkeypatch):
    monkeypatch.setenv("FOURSTAGE_HOME", str(home))
    monkeypatch.setenv("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "1")
    log = home / "log"
    log.write_text("a first line\nImportError: no such thing\n")
    for code, said in (("pass", "ended as it started"), ("input()", "did not start")):
        guard = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        if code == "pass":
            guard.wait()
        with pytest.raises(EnvironmentFault, match=f"{said}.*\n.*\n.*ImportError: no such thing"):
            embedded_prefect._wait_for(guard, "http://127.0.0.1:9", log)
        guard.communicate()


def test_a_database_of_a_newer_prefect_is_named_with_what_to_do(
    home: Path, tmp_path: Path, empty_prefect: Path
):
    database = tmp_path / "prefect" / "prefect.db"
    database.parent.mkdir()
    shutil.copy(empty_prefect, database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("update alembic_version set version_num = 'ffffffffffff'")
    bringing_it = bringing(home, database.parent, stderr=subprocess.PIPE)
    said = bringing_it.communicate()[1].decode()
    assert f"a newer Prefect has used its database {database}. Install that version again" in said
    assert "or move the file away" in said


def test_a_log_that_gc_took_away_meanwhile_is_not_looked_for(home):
    guard = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    embedded_prefect._end(guard, home / "20261129-152034-prefect-1.log")
    assert guard.returncode is not None


def plant(database: Path) -> None:
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        connection.execute("create table planted (number)")


def has_planted(database: Path) -> bool:
    question = "select 1 from sqlite_master where name = 'planted'"
    with closing(sqlite3.connect(database)) as connection:
        return bool(connection.execute(question).fetchall())
