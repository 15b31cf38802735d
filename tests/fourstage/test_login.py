"""The login of the servers: random, and read by its owner alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fourstage.command.login import login_file, write_joining


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "a home's"))


def test_it_stays_and_only_its_owner_may_read_it():
    first = login_file().read_text()
    assert login_file().stat().st_mode & 0o777 == 0o600
    assert login_file().read_text() == first
    user, password = first.strip().split(":")
    assert user == "fourstage"
    assert len(password) >= 32


def test_one_that_others_may_have_read_is_made_anew():
    first = login_file().read_text()
    login_file().chmod(0o644)
    assert login_file().read_text() != first
    assert login_file().stat().st_mode & 0o777 == 0o600


def test_the_file_to_source_holds_no_password():
    joining = write_joining("http://127.0.0.1:4200/api")
    assert login_file().read_text().strip() not in joining.read_text()
    assert joining.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("before", "after"), [({}, "true"), ({"DO_NOT_TRACK": "0"}, "0")])
def test_commands_of_others_report_to_nobody_where_it_is_sourced(before, after):
    """`prefect` and `mlflow` know nothing of the settings of ``fourstage``."""
    words = f'. "{write_joining("http://127.0.0.1:4200/api")}" && printenv DO_NOT_TRACK'
    environment = {"PATH": os.environ["PATH"], **before}
    said = subprocess.run(["sh", "-c", words], env=environment, capture_output=True, text=True)
    assert said.stdout == f"{after}\n", said.stderr
