"""The desk that all faults of recipes and data share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.desk import Desk, documents, lines
from tests.flows.databases import put_prefect
from tests.flows.own_project import Project
from tests.flows.person import Listener, Person, end_all


@pytest.fixture(scope="package")
def desk(
    tmp_path_factory: pytest.TempPathFactory, empty_prefect: Path, empty_mlflow: Path
) -> Iterator[Desk]:
    """A project and a home in which the good corpus was trained on once."""
    project = Project(tmp_path_factory.mktemp("project") / "项目 one's own")
    user = Person(tmp_path_factory.mktemp("home") / "a home's", project.folder)
    put_prefect(empty_prefect, user.home / "prefect")
    shutil.copy(empty_mlflow, user.home)
    listener = Listener(user, untraced=True)
    desk = Desk(project, user, listener)
    desk.holds(desk.on_corpus(lines(documents())), 0)
    yield desk
    listener.close()
    end_all(user.home)
