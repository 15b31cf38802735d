"""What `doctor` finds when something is not as it has to be."""

from __future__ import annotations

import fcntl
import json
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from fourstage.command import main
from fourstage.command.diagnosis import diagnose
from fourstage.settings import PRIVATE_ENVIRONMENT, REPOSITORY
from tasks.orchestration.processes import STARTED, identity
from tests.answering import answering


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI", "FOURSTAGE_DATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in PRIVATE_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def finding(check: str):
    return next(found for found in diagnose() if found.check == check)


def test_a_sound_installation_is_fine(capsys):
    assert main(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert {found["status"] for found in findings} <= {"fine", "warning"}
    checks = {found["check"] for found in findings}
    assert {"python", "packages", "own packages", "telemetry", "locks", "disk"} <= checks


def test_a_backend_that_is_unknown_or_not_installed_is_named(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    found = finding("keras backend")
    assert (found.status, found.found) == (
        "wrong",
        "KERAS_BACKEND: expected tensorflow or jax, got 'torch'",
    )
    assert main(["list", "families"]) == 1  # before any work
    assert main(["doctor"]) == 1  # with all other findings
    assert "telemetry" in capsys.readouterr().out
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setitem(sys.modules, "jax", None)
    found = finding("keras backend")
    assert found.status == "wrong"
    assert found.found.startswith("KERAS_BACKEND is jax, which is not installed: pip install jax")


@pytest.mark.parametrize(
    ("hidden", "environment"),
    [
        (False, {"CUDA_VISIBLE_DEVICES": "0"}),
        (True, {"CUDA_VISIBLE_DEVICES": ""}),
        (True, {"CUDA_VISIBLE_DEVICES": "0", "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}),
    ],
)
def test_a_gpu_that_the_backend_cannot_use_is_told(hidden, environment, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\n[ "$1" = --query-gpu=name ] && echo "NVIDIA H100 80GB HBM3"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("fourstage.accelerator.LIBRARIES", {"tensorflow": ("absent",)})
    found = finding("gpu")
    if hidden:
        assert (found.status, found.found) == ("fine", "none")
    else:
        assert found.status == "warning"
        assert found.found.startswith("NVIDIA H100 80GB HBM3, but tensorflow has no CUDA libraries")
        assert "tensorflow[and-cuda]" in found.found
        monkeypatch.setattr("fourstage.accelerator.LIBRARIES", {"tensorflow": ("json",)})
        assert finding("gpu").found == "NVIDIA H100 80GB HBM3, with tensorflow"
        program.write_text("#!/bin/sh\nexec /bin/sleep 9\n")
        monkeypatch.setattr("fourstage.accelerator.SECONDS", 0.1)
        assert finding("gpu").found == "nvidia-smi did not answer within 0.1 s"


def test_a_hidden_package_of_ours_is_named(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").touch()
    code = (
        f"import sys\nsys.path[:0] = {[str(tmp_path), str(REPOSITORY)]!r}\n"
        "from fourstage.command.diagnosis import _our_packages\nprint(_our_packages())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert "`models` is" in done.stdout
    assert "status='wrong'" in done.stdout


def test_another_distribution_with_a_package_of_our_names_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    assert finding("own packages").status == "fine"
    installed = tmp_path / "other-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: other\nVersion: 1\n", "utf-8")
    (installed / "top_level.txt").write_text("recipes\n", "utf-8")
    found = finding("own packages")
    assert found.status == "wrong"
    assert "other installs `recipes` too" in found.found


def test_telemetry_switched_on_is_a_warning(monkeypatch):
    monkeypatch.setenv("DO_NOT_TRACK", "false")
    found = finding("telemetry")
    assert found.status == "warning"
    assert "DO_NOT_TRACK=true" in found.found


def test_a_server_that_does_not_answer_is_wrong(monkeypatch, capsys):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    found = finding("prefect")
    assert found.status == "wrong"
    assert "unset PREFECT_API_URL" in found.found
    assert main(["doctor"]) == 1


def test_a_server_that_answers_is_fine(monkeypatch):
    with answering(lambda request: (200, {}, b'{"experiments": []}')) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        assert finding("mlflow").status == "fine"


def test_a_page_to_log_in_is_no_server(monkeypatch):
    with answering(lambda request: (200, {}, b"<html>Who are you?</html>")) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        monkeypatch.setenv("PREFECT_API_URL", f"{address}/api")
        for name, article in (("mlflow", "an MLflow"), ("prefect", "a Prefect")):
            assert finding(name).status == "wrong"
            assert f"is not the address of {article} server" in finding(name).found


def test_a_database_without_server_or_driver_is_wrong_and_its_password_is_not_shown(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:sesame@127.0.0.1:9/runs")
    found = finding("mlflow")
    assert found.status == "wrong"
    assert found.found.startswith("postgresql://127.0.0.1:9/runs: ")
    assert "psycopg2-binary" in found.found
    assert "sesame" not in found.found


def test_a_lock_that_is_held_names_its_holder(tmp_path):
    folder = tmp_path / "home" / "store" / "stage"
    folder.mkdir(parents=True)
    (folder / "aaa.lock").write_text("process 1 on here", encoding="utf-8")
    assert finding("locks").found == "none held (1 free)"
    with open(folder / "aaa.lock", "r+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert "stage aaa by process 1 on here" in finding("locks").found


@pytest.mark.parametrize("elsewhere", [False, True])
def test_runs_of_dead_processes_are_counted_and_those_that_go_on_are_not_called_dead(
    elsewhere, tmp_path, monkeypatch
):
    (tmp_path / "home").mkdir()
    database = tmp_path / ("runs.db" if elsewhere else "home/mlflow.db")
    if elsewhere:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
    gone = {**identity(), STARTED: "1.00"}  # its pid is ours now
    with closing(sqlite3.connect(database)) as mlflow:
        mlflow.execute("create table runs (run_uuid text, status text)")
        mlflow.execute("create table tags (run_uuid text, key text, value text)")
        for run, status, tags in (
            ("live", "RUNNING", identity()),
            ("dead", "RUNNING", gone),
            ("done", "FINISHED", gone),
            ("another program's", "RUNNING", {"mlflow.user": "x"}),
        ):
            mlflow.execute("insert into runs values (?, ?)", (run, status))
            mlflow.executemany(
                "insert into tags values (?, ?, ?)", [(run, *tag) for tag in tags.items()]
            )
        mlflow.commit()
        found = finding("orphan runs")
        assert found.status == "warning"
        assert found.found.startswith("1 RUNNING without a process")
        assert found.found.endswith("; 2 going on")
        mlflow.execute("delete from runs where run_uuid = 'dead'")
        mlflow.commit()
    assert finding("orphan runs").status == "fine"


def test_a_home_that_cannot_be_written_is_wrong(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "file" / "home"))
    assert finding("home").status == "wrong"


def test_a_data_folder_that_is_not_there_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("FOURSTAGE_DATA", str(tmp_path / "nowhere"))
    assert finding("FOURSTAGE_DATA").status == "warning"


def test_a_champion_that_was_taken_away_is_a_warning(tmp_path):
    from tasks.registry.versions import without_champion
    from tasks.tracking.connection import connect

    assert finding("champions").found == "no model is registered here"
    assert not (tmp_path / "home" / "mlflow.db").exists(), "looking makes no database"
    tracking = connect()
    for name in ("alone", "small"):
        tracking.client.create_registered_model(name)
        for _ in range(2):
            tracking.client.create_model_version(name, source=str(tmp_path))
        tracking.client.set_registered_model_alias(name, "champion", "2")
    tracking.client.set_registered_model_alias("small", "previous", "1")
    assert finding("champions").status == "fine"
    tracking.client.delete_registered_model_alias("small", "champion")
    found = finding("champions")
    assert found.status == "warning"
    assert "small has no champion while version 1 is the previous one" in found.found
    assert without_champion(tracking) == {"small": 1}


def test_a_database_that_no_run_can_use_is_wrong(tmp_path, empty_mlflow, capsys):
    (tmp_path / "home").mkdir()
    shutil.copy(empty_mlflow, tmp_path / "home" / "mlflow.db")
    with closing(sqlite3.connect(tmp_path / "home" / "mlflow.db")) as database, database:
        database.execute("update alembic_version set version_num = '451aebb31d03'")
    assert main(["doctor"]) == 1
    assert "mlflow db upgrade" in " ".join(capsys.readouterr().out.split())


def test_what_an_older_version_left_open_to_other_users_is_named_with_commands(
    tmp_path, monkeypatch
):
    home = tmp_path / "a home"
    monkeypatch.setenv("FOURSTAGE_HOME", str(home))
    predictions = home / "store" / "evaluation" / "1f" / "predictions.parquet"
    predictions.parent.mkdir(parents=True)
    predictions.touch(0o644)
    (home / "prefect").mkdir(0o755)
    home.chmod(0o755)
    found = finding("privacy")
    assert found.status == "warning"
    for command in found.found.partition(": ")[2].split("; "):
        subprocess.run(shlex.split(command), check=True)
    assert finding("privacy").status == "fine"
    assert [path.stat().st_mode & 0o777 for path in (home / "prefect", predictions)] == [
        0o700,
        0o600,
    ]


def test_a_champion_whose_files_are_gone_is_wrong(tmp_path):
    from tasks.registry.versions import MODEL_TAG
    from tasks.tracking.connection import connect
    from tasks.tracking.runs import ensure_experiment

    client = connect().client
    model = client.create_logged_model(ensure_experiment(connect(), "small"), name="small")
    (tmp_path / "weights").write_text("1")
    client.log_model_artifacts(model.model_id, str(tmp_path / "weights"))
    client.create_registered_model("small")
    tags = {MODEL_TAG: model.model_id}
    client.create_model_version("small", source=str(tmp_path), tags=tags)
    client.set_registered_model_alias("small", "champion", "1")
    assert finding("champions").status == "fine"
    (tmp_path / "home" / "mlflow").rename(tmp_path / "moved")
    found = finding("champions")
    assert found.status == "wrong"
    assert f"small version 1: the files of {model.model_id} are not in {tmp_path}" in found.found
