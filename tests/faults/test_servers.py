"""S31 to S34: a server that refuses, is silent, loses answers, or dies in the middle."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from fourstage.settings import PRIVATE_ENVIRONMENT
from tests.answering import answering
from tests.faults.always import what_always_holds
from tests.faults.finished_home import flip, small
from tests.flows.conftest import free_port, wait_for
from tests.flows.own_project import Project, recipe, stages
from tests.flows.person import Answer, Person, answer_of, end, end_all

NOBODY = "http://127.0.0.1:9"  # the port of `discard`, where nobody listens
STEPS = 1000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project") / "own")


@pytest.fixture
def silent() -> Iterator[str]:
    """Address of a server that takes every call and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def refuse(home: Path, answer: Answer, variable: str, address: str) -> None:
    """A run ended because a server does not answer."""
    what_always_holds(
        home, answer, 1, f"{variable}={address} does not answer .*unset {variable} to run without"
    )
    assert not list((home / "store").glob("*/*"))  # nothing was made for nothing


@pytest.mark.parametrize(
    ("variable", "address"),
    [("MLFLOW_TRACKING_URI", NOBODY), ("PREFECT_API_URL", f"{NOBODY}/api")],
)
def test_a_server_that_refuses_ends_a_run_at_once(project, tmp_path, variable, address):
    """S31, S33."""
    person = Person(tmp_path / "home", project.folder, {variable: address})
    answer = person.types("run", "small", "--json")
    refuse(person.home, answer, variable, address)
    assert answer.seconds < 30


def test_a_server_that_is_silent_holds_a_run_up_for_seconds(project, tmp_path, silent):
    """S32."""
    began = time.monotonic()
    started = [
        (variable, person, person.start("run", "small", "--json"))
        for variable in ("MLFLOW_TRACKING_URI", "PREFECT_API_URL")
        for person in [Person(tmp_path / variable, project.folder, {variable: silent})]
    ]
    for variable, person, process in started:  # they wait together
        answer = answer_of(process, began)
        refuse(person.home, answer, variable, silent)
        assert answer.seconds < 60


@dataclass
class Death:
    """What came of a run whose MLflow server was killed while a stage trained."""

    person: Person
    killed: Answer
    checkpoints: list[int]
    finished: Answer
    history: list[tuple[int, float]]
    runs: list[Any]


def server(folder: Path, port: int) -> subprocess.Popen[str]:
    """MLflow's own server on SQLite."""
    command = ("server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    stores = (
        *("--backend-store-uri", f"sqlite:///{folder / 'm.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "mlflow", *command, *stores],
        cwd=folder,
        env=os.environ | PRIVATE_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    wait_for(f"http://127.0.0.1:{port}/health", process)
    return process


def steps_of(home: Path) -> list[int]:
    found = (home / "store" / "stage").glob("*/checkpoints/step-*")
    return sorted(int(path.name.removeprefix("step-")) for path in found)


def until(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def death(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Death]:
    from mlflow import MlflowClient

    folder = tmp_path_factory.mktemp("server")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    only = [{**stages()[0], "budget": {"steps": STEPS}}]
    path = project.recipe(recipe("long", stages=only, evaluate=None, promote=None))
    person = Person(folder / "home", project.folder, {"MLFLOW_TRACKING_URI": address})
    command = ("run", str(path), "--json")
    mlflow = server(folder, port)
    try:
        began = time.monotonic()
        process = person.start(*command)
        until(lambda: len(steps_of(person.home)) > 1, process)
        os.killpg(mlflow.pid, signal.SIGKILL)
        mlflow.wait()
        killed = answer_of(process, began, 300)
        left = steps_of(person.home)
        (newest,) = (person.home / "store" / "stage").glob(f"*/checkpoints/step-{left[-1]:09d}")
        flip(newest / "state.safetensors")
        mlflow = server(folder, port)
        finished = person.types(*command)
        client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'm.db'}")
        runs = list(
            client.search_runs([each.experiment_id for each in client.search_experiments()])
        )
        (stage,) = [run for run in runs if run.data.tags.get("fourstage.kind") == "stage"]
        points = client.get_metric_history(stage.info.run_id, "loss")
        yield Death(person, killed, left, finished, [(p.step, p.value) for p in points], runs)
    finally:
        end(mlflow)
        end_all(person.home)


@pytest.mark.slow
def test_a_server_that_dies_ends_the_run_and_keeps_its_checkpoints(death: Death):
    """S34."""
    what_always_holds(
        death.person.home,
        death.killed,
        1,
        r"MLflow at http://127\.0\.0\.1:\d+ .*does not answer as it should",
        "What is finished is kept.* run the same command again",
    )
    assert 0 < death.checkpoints[0] < death.checkpoints[-1] < STEPS


@pytest.mark.slow
def test_with_the_server_back_nothing_is_lost_or_logged_twice(death: Death):
    """S34."""
    what_always_holds(death.person.home, death.finished, 0)
    (stage,) = [s for s in death.finished.json["stages"] if s["status"] != "skipped"]
    assert stage["steps"] == STEPS
    steps = [step for step, _ in death.history]
    assert steps == sorted(set(steps))
    gaps = {after - before for before, after in zip([0, *steps], steps, strict=False)}
    assert len(gaps) <= 2, sorted(gaps)  # every so many steps, and the last one
    assert steps[-1] == STEPS
    assert {run.info.status for run in death.runs} <= {"FINISHED", "KILLED", "FAILED"}


@pytest.mark.slow
def test_a_damaged_checkpoint_is_said_and_the_one_before_it_taken(death: Death):
    newest = f"step-{death.checkpoints[-1]:09d}"
    assert f"{newest}/state.safetensors: its digest is not the one" in death.finished.err
    assert "using the previous checkpoint instead" in death.finished.err


class Losing:
    """A proxy before a server; of every third answer nothing arrives but trouble.

    The request was lost on the way there, or the answer on the way back, when the server has done
    what it was asked for; the connection is cut, or somebody on the way answers in its place.

    Args:
        address: Of the server.
    """

    TROUBLE = (500, 502, 503, None)

    def __init__(self, address: str):
        self.address = address
        self.asked = 0
        self.lock = threading.Lock()

    def __call__(self, request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes] | None:
        with self.lock:
            self.asked += 1
            number = self.asked
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        lost, number = number % 3 == 0, number // 3
        if lost and number % 2:
            return self.trouble(number // 2)
        kept = {name: value for name, value in request.headers.items() if name != "Host"}
        asked = urllib.request.Request(
            self.address + request.path, body or None, kept, method=request.command
        )
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                found = answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            found = error.code, dict(error.headers), error.read()
        return self.trouble(number // 2) if lost else found

    def trouble(self, number: int) -> tuple[int, dict[str, str], bytes] | None:
        status = self.TROUBLE[number % 4]
        return None if status is None else (status, {}, b"trouble")


@pytest.mark.slow
def test_where_a_third_of_the_answers_is_lost_a_run_ends_well_and_nothing_is_doubled(tmp_path):
    from mlflow import MlflowClient

    project = Project(tmp_path / "own")
    project.recipe(small())
    port = free_port()
    mlflow = server(tmp_path, port)
    losing = Losing(f"http://127.0.0.1:{port}")
    try:
        with answering(losing) as address:
            person = Person(tmp_path / "home", project.folder, {"MLFLOW_TRACKING_URI": address})
            answer = person.types("run", "small", "--json")
        what_always_holds(person.home, answer, 0)
        assert losing.asked > 100
        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'm.db'}")
        experiments = [each.experiment_id for each in client.search_experiments()]
        runs = client.search_runs(experiments)
        assert sorted(run.data.tags["fourstage.kind"] for run in runs) == ["lifecycle"] + 2 * [
            "stage"
        ]
        assert {run.info.status for run in runs} == {"FINISHED"}
        for run in runs:
            for name in run.data.metrics:
                if name.startswith("system/"):
                    continue
                steps = [point.step for point in client.get_metric_history(run.info.run_id, name)]
                assert steps == sorted(set(steps)), name
            names = [used.dataset.name for used in run.inputs.dataset_inputs]
            assert len(names) == len(set(names))
        (version,) = client.search_model_versions("name = 'small'")
        assert int(version.version) == 1
        models = client.search_logged_models(experiments)
        assert len(models) == 3  # of two stages and the package
        assert {str(model.status) for model in models} == {"READY"}
    finally:
        end(mlflow)
        end_all(person.home)
