"""A server and a worker started by Prefect's own commands, as docs/operations.md has them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fourstage.settings import REPOSITORY
from tests.flows.person import Person, end

pytestmark = pytest.mark.slow

WITHIN = 60  # seconds of silence; Prefect looks for it at least that often
LASTS = 3 * WITHIN
HELD = 20  # seconds for which nothing else of the process may run, not even its heartbeats
SLEEPER = f"""
import ctypes, time
from prefect import flow

@flow
def sleep():
    ctypes.PyDLL(None).sleep({HELD})
    time.sleep({LASTS - HELD})
"""


@pytest.fixture(scope="module")
def person(prefect_server: str, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """A project whose one flow does nothing for long, deployed as ours are."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "fourstage.project").write_text("A project.\n")
    (folder / "sleeper.py").write_text(SLEEPER)
    file = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text("utf-8"))
    (prepare,) = [each for each in file["deployments"] if each["name"] == "prepare"]
    changed = {"entrypoint": "sleeper:sleep", "parameters": {}}
    file["deployments"] = [prepare | changed]
    (folder / "prefect.yaml").write_text(yaml.safe_dump(file), "utf-8")
    automations = yaml.safe_load((REPOSITORY / "automations.yaml").read_text("utf-8"))
    automations["automations"][0]["trigger"]["within"] = WITHIN
    (folder / "automations.yaml").write_text(yaml.safe_dump(automations), "utf-8")
    settings = {"PREFECT_API_URL": prefect_server, "PREFECT_HOME": str(folder / "prefect")}
    return Person(folder / "home", folder, settings)


def module(person: Person, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=person.folder,
        env=person.variables(**environment),
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def worker(person: Person) -> Iterator[subprocess.Popen[str]]:
    for words in (
        ("prefect", "work-pool", "create", "fourstage", "--type", "process"),
        ("prefect", "--no-prompt", "deploy", "--all"),
        ("tasks.orchestration.automations", "automations.yaml"),
    ):
        assert module(person, *words).wait(120) == 0
    root = {"FOURSTAGE_ROOT": str(person.folder)}
    process = module(person, "prefect", "worker", "start", "--pool", "fourstage", **root)
    yield process
    end(process)


def ask(server: str, path: str, body: Any | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server}/{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_a_run_that_lasts_longer_than_the_window_is_not_taken_for_dead(
    person: Person, worker: subprocess.Popen[str], prefect_server: str
):
    (deployment,) = ask(
        prefect_server, "deployments/filter", {"deployments": {"name": {"any_": ["prepare"]}}}
    )
    run = ask(prefect_server, f"deployments/{deployment['id']}/create_flow_run", {})
    deadline = time.monotonic() + LASTS + 120
    under_way = ("SCHEDULED", "PENDING", "RUNNING")
    while ask(prefect_server, f"flow_runs/{run['id']}")["state_type"] in under_way:
        assert time.monotonic() < deadline
        assert worker.poll() is None
        time.sleep(1)
    states = ask(prefect_server, f"flow_run_states/?flow_run_id={run['id']}")
    names = [state["name"] for state in sorted(states, key=lambda state: state["timestamp"])]
    assert names[-1] == "Completed"
    assert names.count("Running") == 1
    assert "Crashed" not in names


def test_the_project_is_named_to_the_worker_alone(person: Person, prefect_server: str):
    """No path of this machine is on the server."""
    assert not any(
        str(Path(place)) in json.dumps(ask(prefect_server, "deployments/filter", {}))
        for place in (person.folder, REPOSITORY)
    )
