"""Addresses as they may be shown, and whose packages Python finds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fourstage.settings import (
    REPOSITORY,
    enter_project,
    make_home,
    make_private,
    without_credentials,
)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("https://me:sesame@example.org:5000/a@b", "https://example.org:5000/a@b"),
        ("http://me:sesame/x@example.org", "http://example.org"),  # no port, so none to ask
        ("http://[::1", "http://[::1"),
        ("postgresql://me:sesame@127.0.0.1:9/runs", "postgresql://127.0.0.1:9/runs"),
        ("postgresql://me:a/ses?ame#@127.0.0.1/runs", "postgresql://127.0.0.1/runs"),
        ("postgresql://me:a@sesame@127.0.0.1/runs", "postgresql://127.0.0.1/runs"),
        ("postgresql:///runs?host=/run&password=sesame", "postgresql:///runs"),
        ("sqlite:////srv/me@example.org/mlflow.db", "sqlite:////srv/me@example.org/mlflow.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str):
    assert without_credentials(address) == shown


def test_another_projects_package_of_one_of_our_names_is_refused(tmp_path: Path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "fourstage.command", "list", "families"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])},
    )
    assert done.returncode == 1
    assert "another package 'tasks' first" in done.stderr
    assert "fresh virtual environment" in done.stderr


@pytest.mark.parametrize(
    ("said", "then"),
    [
        (None, "--xla_gpu_deterministic_ops=true"),
        ("--xla_dump_to=a", "--xla_dump_to=a --xla_gpu_deterministic_ops=true"),
        ("--xla_gpu_deterministic_ops=false", "--xla_gpu_deterministic_ops=false"),
        ("xla.flags", "xla.flags"),
    ],
)
def test_gpus_are_deterministic_unless_the_user_has_set_otherwise(said, then, monkeypatch):
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"})
    if said:
        os.environ["XLA_FLAGS"] = said
    make_private()
    assert os.environ["XLA_FLAGS"] == then


def test_relative_locations_stay_where_they_are_when_the_folder_changes(tmp_path, monkeypatch):
    ours = ("FOURSTAGE_HOME", "PREFECT_HOME", "FOURSTAGE_DATA", "MLFLOW_TRACKING_URI")
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if k not in ours})
    monkeypatch.chdir(tmp_path)
    given = ["mine", "~/pf", "data:/srv/data", "sqlite:///runs.db"]
    os.environ |= dict(zip(ours, given, strict=True))
    make_private()
    assert [os.environ[name] for name in ours] == [
        f"{tmp_path}/mine",
        os.path.expanduser("~/pf"),
        f"{tmp_path}/data:/srv/data",
        f"sqlite:///{tmp_path}/runs.db",
    ]


def test_prefects_folder_goes_with_the_home_into_a_new_project(tmp_path, monkeypatch):
    ours = ("FOURSTAGE_HOME", "PREFECT_HOME")
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if k not in ours})
    monkeypatch.chdir(tmp_path)
    make_private()
    project = tmp_path / "new"
    project.mkdir()
    (project / "fourstage.project").touch()
    enter_project(project)
    assert os.environ["PREFECT_HOME"] == f"{project}/var/prefect"


def test_what_prefect_keeps_of_runs_is_read_by_its_owner_alone(tmp_path, monkeypatch):
    """Its database has every line that a run logged, and the secret address of notifications."""
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home" / "prefect"))
    usual = os.umask(0o022)
    try:
        make_home()
    finally:
        os.umask(usual)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").iterdir()}
    assert modes == {"store": 0o755, "prefect": 0o700}
