"""Homes, projects and servers of the tests that run the product."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from fourstage.settings import PRIVATE_ENVIRONMENT
from tests.flows.databases import put_prefect
from tests.flows.own_project import Project
from tests.flows.person import Answer, Listener, Person, end, end_all, living
from tests.flows.screen import Screen


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address: str, process: subprocess.Popen, seconds: float = 120) -> None:
    """Until an address answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, f"ended with {process.returncode}"
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"no answer from {address} within {seconds} s")


@contextmanager
def served_prefect(home: Path, **more: str) -> Iterator[str]:
    """A Prefect server with a scheduler, on loopback: its API's address.

    Args:
        home: Its folder, which has a database.
        more: Further variables of its environment.
    """
    port = free_port()
    with open(home / "log", "wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "prefect", "server", "start"),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            env=os.environ
            | PRIVATE_ENVIRONMENT
            | {"PREFECT_HOME": str(home), "PREFECT_UI_URL": f"http://127.0.0.1:{port}"}
            | more,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/api/health", process)
        yield f"http://127.0.0.1:{port}/api"
    finally:
        end(process)


@pytest.fixture(scope="package")
def prefect_server(tmp_path_factory: pytest.TempPathFactory, empty_prefect: Path) -> Iterator[str]:
    """A Prefect server that the tests of this folder share: its API's address."""
    home = tmp_path_factory.mktemp("prefect-server")
    put_prefect(empty_prefect, home)
    with served_prefect(home) as address:
        yield address


@dataclass
class Story:
    """Two runs of the quickstart at its smallest, in one home; the first at a terminal.

    Attributes:
        left: Processes that lived in the home when both had ended.
    """

    person: Person
    first: Answer
    second: Answer
    screen: Screen
    left: list[psutil.Process]

    @property
    def database(self) -> dict[str, str]:
        """MLflow's address, for programs that know nothing of a home."""
        return {"MLFLOW_TRACKING_URI": f"sqlite:///{self.person.home / 'mlflow.db'}"}


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A clean home, no server, a folder that is not the clone; the same command twice."""
    home = tmp_path_factory.mktemp("home") / "我的 home's"
    user = Person(home, tmp_path_factory.mktemp("anywhere"))
    command = ("run", "quickstart", "--smoke", "--json")
    first, screen = user.sees(*command, columns=80)
    second = user.types(*command)
    yield Story(user, first, second, screen, living(home))
    end_all(home)


@pytest.fixture(scope="package")
def someone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """Who runs recipes that have nothing to do with each other, in one home."""
    home = tmp_path_factory.mktemp("home") / "a home's"
    listener = Listener(Person(home, tmp_path_factory.mktemp("anywhere")))
    yield listener
    listener.close()
    end_all(home)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of one's own."""
    return Project(tmp_path_factory.mktemp("project") / "项目 one's own")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Person]]:
    """Makes people, each with a new home; ends what their commands leave."""
    homes: list[Path] = []

    def make(folder: Path, **environment: str) -> Person:
        homes.append(tmp_path_factory.mktemp("home") / "a home's")
        return Person(homes[-1], folder, environment)

    yield make
    for home in homes:
        end_all(home)
