"""Servers that fail, databases half made, and what connecting may import."""

from __future__ import annotations

import errno
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from fourstage.errors import EnvironmentFault
from fourstage.settings import PAGES
from tasks.tracking import connection
from tasks.tracking.connection import Tracking, answered, connect, made_once
from tasks.tracking.runs import ensure_experiment
from tests.answering import answering


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers have one second; the whole time is waited for in tests/faults/test_servers.py."""
    assert connection.CONNECT_SECONDS <= 10
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 1)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_refuses_is_named_with_its_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://someone:secret@127.0.0.1:9")
    began = time.monotonic()
    with pytest.raises(EnvironmentFault) as caught:
        connect()
    assert time.monotonic() - began < 30
    assert "http://127.0.0.1:9" in str(caught.value)
    assert "MLFLOW_TRACKING_URI" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.usefixtures("impatient")
def test_a_silent_server_holds_nobody_up(home: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
        began = time.monotonic()
        with pytest.raises(EnvironmentFault, match=str(port)):
            connect()
        assert time.monotonic() - began < 30


def test_links_lead_to_the_pages_of_this_home_as_those_of_training(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("FOURSTAGE_MLFLOW_UI", raising=False)
    tracking = connect()
    assert tracking.page("experiments/1") is None
    (home / PAGES).write_text("http://127.0.0.1:5000\n")
    here = "http://127.0.0.1:5000/#/experiments/1?workflowType=machine_learning"
    assert tracking.page("experiments/1") == here
    monkeypatch.setenv("FOURSTAGE_MLFLOW_UI", "http://127.0.0.1:5001/")
    assert tracking.page("x") == "http://127.0.0.1:5001/#/x?workflowType=machine_learning"


def test_a_folder_of_files_is_no_tracking_store(home: Path):
    with pytest.raises(EnvironmentFault, match="sqlite:///PATH"):
        connect("./mlruns")


def test_a_home_that_is_a_file_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="can't be written by user"):
        connect(f"sqlite:///{tmp_path}/file/home/mlflow.db", tmp_path / "file" / "home")


def test_a_database_where_nothing_can_be_written_is_named_at_once(home: Path):
    with pytest.raises(EnvironmentFault, match="the folder /proc can't be written by user"):
        connect("sqlite:////proc/mlflow.db")


@pytest.mark.parametrize("half", [b"SQLite format 3\0 and then no more", None])
def test_a_database_that_is_none_is_named_with_what_to_do(home: Path, half: bytes | None):
    database = home / "mlflow.db"
    database.mkdir() if half is None else database.write_bytes(half)
    with pytest.raises(EnvironmentFault, match=r"mlflow.db can't be used: .*or move it away"):
        connect()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            "451aebb31d03",
            r"an older MLflow than .* run  mlflow db upgrade sqlite:///.*mlflow\.db  ",
        ),
        ("ffffffffffff", r"a newer MLflow than the installed .* Install that version again"),
    ],
)
def test_a_database_of_another_version_is_named_with_what_to_do(
    home: Path, empty_mlflow: Path, schema: str, said: str
):
    """An older one can be brought up to date: whoever moves it away loses its history."""
    shutil.copy(empty_mlflow, home / "mlflow.db")
    with closing(sqlite3.connect(home / "mlflow.db")) as database, database:
        database.execute("update alembic_version set version_num = ?", (schema,))
    with pytest.raises(EnvironmentFault, match=said) as caught:
        connect()
    assert "move it away" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/elsewhere/x"), "/elsewhere/x.*TMPDIR"),
        (shutil.Error([("a", "b", "[Errno 28] No space left on device")]), "No space .*TMPDIR"),
        (PermissionError(errno.EACCES, "Permission denied", "mlflow/1"), "'mlflow/1'"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files: .* may have"),
    ],
)
def test_files_that_cannot_be_copied_are_no_fault_of_the_database(
    tracking: Tracking, error: OSError, said: str
):
    """Or one would be told to move the database away because a folder is full."""

    @answered
    def copy(_: Tracking) -> None:
        raise error

    with pytest.raises(EnvironmentFault, match=said) as caught:
        copy(tracking)
    assert "mlflow.db" not in str(caught.value)


def test_an_address_that_is_none_is_named(home: Path):
    with pytest.raises(EnvironmentFault, match=r"MLFLOW_TRACKING_URI=http://\[::1 is invalid"):
        connect("http://[::1")


def test_a_database_that_a_kill_left_half_made_is_made_anew(home: Path):
    half = home / ".mlflow.db.part"
    connecting = "from tasks.tracking.connection import connect; connect()"
    process = subprocess.Popen([sys.executable, "-c", connecting])
    while not _has_tables(half):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not (home / "mlflow.db").exists()

    assert ensure_experiment(connect(), "demo")
    assert not half.exists()


def _has_tables(database: Path) -> bool:
    if not database.exists():
        return False
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            return bool(connection.execute("select 1 from sqlite_master limit 1").fetchall())
        except sqlite3.OperationalError:  # locked
            return False


def test_a_locked_database_is_waited_for_and_its_holder_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    connect()
    monkeypatch.setattr("tasks.tracking.database_lock.SECONDS", 1.0)
    holding = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        " c.execute('begin exclusive'); print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", holding, str(home / "mlflow.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(EnvironmentFault, match=rf"mlflow.db is locked .*process {process.pid} "):
        connect()
    assert capsys.readouterr().err.count("waiting up to 1 s") == 1
    threading.Timer(0.5, process.stdin.close).start()
    assert connect().client.search_experiments()


def test_what_a_lost_answer_had_made_is_found_and_not_made_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import TEMPORARILY_UNAVAILABLE

    connect()
    monkeypatch.setattr("tasks.tracking.connection.PAUSES", (0.0, 0.0, 0.0))
    made: list[str] = []
    tries: list[int] = []

    def create() -> str:
        tries.append(1)
        if len(tries) > 1:
            made.append("a run")
        raise MlflowException("lost", error_code=TEMPORARILY_UNAVAILABLE)

    assert made_once(create, lambda: made[0] if made else None) == "a run"
    assert len(made) == 1


def test_trouble_at_the_first_question_passes(home: Path, monkeypatch: pytest.MonkeyPatch):
    left = [500, 502, 503]
    assert sum(connection.PAUSES[: len(left)]) < connection.CONNECT_SECONDS
    monkeypatch.setattr(connection, "PAUSES", (0.0,) * len(connection.PAUSES))

    def answers(request):
        return (left.pop(), {}, b"") if left else (200, {}, b"{}")

    with answering(answers) as address:
        assert connect(address).client.search_experiments() == []


def test_looking_at_the_registry_needs_no_heavy_package():
    modules = (
        "tracking.connection tracking.stage_models reports.cards registry.lineage"
        " registry.lineage_views registry.promote_model registry.gate registry.register_model"
    )
    code = f"""
import importlib, sys
for heavy in ("tensorflow", "keras", "prefect", "mlflow", "great_expectations", "matplotlib"):
    sys.modules[heavy] = None
for name in "{modules}".split():
    importlib.import_module("tasks." + name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
