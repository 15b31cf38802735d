"""A home in which a small recipe has been run, and copies of it to do damage to."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fourstage.errors import GateRefused
from tasks.store.artifacts import Artifact, Store
from tests.flows.databases import put_prefect
from tests.flows.own_project import SIZE, Project, recipe, stages
from tests.flows.person import Answer, Listener, Person, end_all
from tests.made_once import made_once

# What the network knew before its labels is asked of one version.
ASKED = (
    *("--set", "evaluate.probes.rows=accuracy"),
    *("--set", "evaluate.prototypes={rows: {ways: [2], shots: [1, 3], episodes: 50}}"),
)
# A batch of another size is another finetune stage; the one before it is the same.
SECOND = ("run", "small", "--set", "stages.finetune.batch_size=16", "--json")
THIRD = ("run", "small", "--set", "stages.finetune.batch_size=12", "--json")
STRICT = ("--set", "promote.require.accuracy.at_least=1.0")
# MLflow keeps whole addresses of what lies in files.
ADDRESSES = {
    "experiments": "artifact_location",
    "runs": "artifact_uri",
    "logged_models": "artifact_location",
    "model_versions": "storage_location",
}


def small(**changes: Any) -> dict[str, Any]:
    """Two stages of a few updates."""
    few = {"budget": {"steps": 8}}
    general, *_, finetune = stages(general=few, finetune=few)
    return recipe("small", **({"size": SIZE, "stages": [general, finetune]} | changes))


@dataclass(frozen=True)
class Finished:
    """What was made once.

    Attributes:
        project: Folder with the recipe ``small``.
        home: Three versions of its model are registered, the second is the champion, the third was
            refused.
        told: What the commands answered.
        copies: Homes given away.
    """

    project: Path
    home: Path
    told: Mapping[str, Answer]
    copies: list[Path]

    def copy(self, folder: Path) -> Person:
        """Somebody with a home that is the same, in a new folder."""
        home = folder / "别的 home's"
        shutil.copytree(self.home, home)
        with closing(sqlite3.connect(home / "mlflow.db")) as database, database:
            for table, column in ADDRESSES.items():
                database.execute(
                    f"update {table} set {column} = replace({column}, ?, ?)",
                    (self.home.as_uri(), home.as_uri()),
                )
        self.copies.append(home)
        return Person(home, self.project)


def entry(home: Path, kind: str, name: str, after: int = 0) -> Artifact:
    """The newest entry of a step, or that after which so many more were made."""
    made = [found for found in Store(home).entries(kind) if found.name == name]
    return made[-1 - after]


def flip(path: Path) -> None:
    """Turn one bit in the middle of a file."""
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


def make(prefect: Path, mlflow: Path, folder: Path) -> None:
    """Run the commands in a home with these databases, and write down what they answered."""
    project = Project(folder / "project" / "项目 one's own")
    project.recipe(small())
    user = Person(folder / "home" / "我的 家's", project.folder)
    put_prefect(prefect, user.home / "prefect")
    shutil.copy(mlflow, user.home)
    listener = Listener(user, untraced=True)
    commands = {
        "first": ("run", "small", *ASKED, "--json"),
        "rolled back": ("rollback", "small", "--json"),
        "no such model": ("rollback", "smal"),
        "second": SECOND,
        "third": (*THIRD, *STRICT),
    }
    try:
        told = {name: listener.types(*words) for name, words in commands.items()}
    finally:
        listener.close()
        end_all(user.home)
    for name, code in (("second", 0), ("third", GateRefused.exit_code)):
        assert told[name].code == code, told[name].told()
    answers = {name: asdict(answer) for name, answer in told.items()}
    (folder / "told.json").write_text(json.dumps(answers), "utf-8")


@pytest.fixture(scope="session")
def finished(
    tmp_path_factory: pytest.TempPathFactory, empty_prefect: Path, empty_mlflow: Path
) -> Iterator[Finished]:
    """Three versions of a small model, made by the first worker that needs them.

    All workers read them, so nothing may be changed but a copy.
    """
    fill = partial(make, empty_prefect, empty_mlflow)
    folder = made_once(tmp_path_factory, "finished", fill)
    (project,) = (folder / "project").iterdir()
    (home,) = (folder / "home").iterdir()
    answers = json.loads((folder / "told.json").read_text("utf-8"))
    found = Finished(project, home, {name: Answer(**told) for name, told in answers.items()}, [])
    yield found
    for copy in found.copies:
        end_all(copy)


@pytest.fixture
def listener_of() -> Iterator[Callable[..., Listener]]:
    """Starts processes that answer, and ends them; untraced, as `finished` was trained."""
    started: list[Listener] = []

    def start(person: Person, untraced: bool = True) -> Listener:
        started.append(Listener(person, untraced))
        return started[-1]

    yield start
    for listener in started:
        listener.close()
