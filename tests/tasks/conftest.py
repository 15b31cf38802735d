"""A home of its own for every test, with a real SQLite tracking database."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tasks.tracking.connection import Tracking, connect
from tests.tasks.lifecycle import Lifecycle, make_saved_model


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Blanks, Chinese and a quote: what a home may be called on a user's machine.
    folder = tmp_path / "我的 家's"
    folder.mkdir()
    monkeypatch.setenv("FOURSTAGE_HOME", str(folder))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def tracking(home: Path, empty_mlflow: Path) -> Tracking:
    shutil.copy(empty_mlflow, home / "mlflow.db")
    return connect()


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    make_saved_model(folder)
    return folder


@pytest.fixture
def lifecycle(home: Path) -> Lifecycle:
    return Lifecycle(home)
