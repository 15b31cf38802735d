"""A home of its own for every test, with a real SQLite tracking database."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
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


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One home for all tests of a file, whose recipes share their text."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FOURSTAGE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., Plan]:
    """Plans a recipe as a smoke run, or as it is."""

    def plan(recipe: dict[str, Any], *overrides: str, smoke: bool = True) -> Plan:
        file = tmp_path / f"{recipe['name']}.yaml"
        file.write_text(yaml.safe_dump(recipe, sort_keys=False), "utf-8")
        return plan_recipe(str(file), overrides, smoke)

    return plan


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
