"""``fourstage up`` and what it is for: a run that nobody starts, from its cron to the alias."""

from __future__ import annotations

import json
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from fourstage.settings import REPOSITORY
from tests.flows.conftest import Story, free_port
from tests.flows.own_project import Project
from tests.flows.person import Person, living
from tests.flows.started_up import Up, started_up

pytestmark = pytest.mark.slow

RUN_SECONDS = 600
TERMINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@pytest.fixture(scope="module")
def up(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The servers with a project's own deployments, the lifecycle each minute.

    They share the home of the smoke runs, so that its text need not be read again.
    """
    folder = tmp_path_factory.mktemp("project") / "一个 project"
    project = Project(folder)
    recipe = yaml.safe_load((REPOSITORY / "recipes" / "quickstart.yaml").read_text("utf-8"))
    recipe |= {"name": "scheduled", "seed": 23}
    recipe["promote"]["model"] = "scheduled"
    project.recipe(recipe)
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text("utf-8"))
    weekly = next(each for each in deployments["deployments"] if each["name"] == "weekly")
    weekly["parameters"] = {"recipe": "recipes/scheduled.yaml", "smoke": True}
    weekly["schedules"][0]["cron"] = "* * * * *"
    (folder / "prefect.yaml").write_text(yaml.safe_dump(deployments), "utf-8")
    with started_up(Person(story.person.home, folder), tmp_path_factory.mktemp("up")) as up:
        yield up


def test_up_prints_where_to_look_and_all_of_it_answers(up: Up):
    said = up.said.read_text("utf-8")
    assert f"{up.prefect}/v2" in said
    assert up.mlflow in said
    assert f"PREFECT_API_URL={up.prefect}/api" in said
    assert "Traceback" not in said
    with urllib.request.urlopen(f"{up.mlflow}/health", timeout=30) as answer:
        assert answer.status == 200
    wanted = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text("utf-8"))["deployments"]
    there = up.ask("deployments/filter", {})
    assert {each["name"] for each in there} == {each["name"] for each in wanted}
    assert not any(str(REPOSITORY) in json.dumps(each) for each in there)  # no machine's path
    weekly = next(each for each in there if each["name"] == "weekly")
    assert [schedule["slug"] for schedule in weekly["schedules"]] == ["weekly"]


def test_all_of_it_listens_on_loopback_alone(up: Up):
    listening = set()
    for process in living(up.person.home):
        for connection in process.net_connections(kind="inet"):
            if connection.status == psutil.CONN_LISTEN:
                listening.add(connection.laddr.ip)
    assert listening <= {"127.0.0.1", "::1"}
    assert "127.0.0.1" in listening


def test_a_scheduled_run_goes_from_its_cron_to_the_alias(up: Up):
    (weekly,) = up.ask("deployments/filter", {"deployments": {"name": {"any_": ["weekly"]}}})
    assert weekly["parameters"] == {"recipe": "recipes/scheduled.yaml", "smoke": True}
    runs = {"deployments": {"id": {"any_": [weekly["id"]]}}, "sort": "EXPECTED_START_TIME_ASC"}
    deadline = time.monotonic() + RUN_SECONDS
    ended: list[dict[str, Any]] = []
    while not ended:
        assert time.monotonic() < deadline, (up.person.home / "logs" / "worker.log").read_text()
        found = up.ask("flow_runs/filter", runs)
        ended = [run for run in found if run["state_type"] in TERMINAL]
        time.sleep(1)
    run = ended[0]
    log = (up.person.home / "logs" / "worker.log").read_text("utf-8", "replace")
    assert run["state_type"] == "COMPLETED", f"{run['state']['message']}\n{log[-3000:]}"
    assert run["auto_scheduled"] is True
    assert run["name"].startswith(f"lifecycle-scheduled-{run['expected_start_time'][:10]}")
    named = [each["key"] for each in up.ask("artifacts/latest/filter", {})]
    assert {"stage-general", "stage-finetune", "gate", "lineage"} <= set(named)
    traced = up.person.types("trace", "models:/scheduled-smoke@champion", "--json")
    assert traced.code == 0, traced.told()
    assert traced.json["model"]["version"] == 1


def test_a_taken_port_is_told_before_anything_starts(up: Up, tmp_path: Path):
    port = up.prefect.rsplit(":", 1)[1]
    other = Person(tmp_path / "home", up.person.folder)
    answer = other.types("up", "--prefect-port", port, "--mlflow-port", str(free_port()))
    assert answer.code == 1, answer.told()
    assert f"port {port}" in answer.err
    assert "--prefect-port" in answer.err
    assert living(other.home) == []


def test_ctrl_c_ends_all_that_was_started(up: Up):
    """The last one: it takes the servers away."""
    assert len(living(up.person.home)) >= 4  # itself, server, MLflow, worker
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(60) == 130
    assert living(up.person.home) == []
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed ones may linger
        probe.bind(("127.0.0.1", int(up.prefect.rsplit(":", 1)[1])))
    assert "Traceback" not in up.said.read_text("utf-8")
