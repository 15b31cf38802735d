"""A run ends while a stage trains: killed with its worker it completes, cancelled it stays so."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
import yaml

from fourstage.settings import REPOSITORY
from tests.flows.own_project import Project, recipe, stages
from tests.flows.person import living
from tests.flows.started_up import Up, started_up
from tests.flows.test_interrupt import checkpoints, client_of, runs, statuses

pytestmark = pytest.mark.slow

STEPS = 1500
RUN_SECONDS = 600


@pytest.fixture(scope="module")
def up(person, tmp_path_factory: pytest.TempPathFactory):
    project = Project(tmp_path_factory.mktemp("project") / "一个 project")
    long = stages(general={"budget": {"steps": STEPS}})
    project.recipe(recipe("long", stages=long))
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text("utf-8"))
    for each in deployments["deployments"]:
        if each["name"] == "weekly":
            each["parameters"] = {"recipe": "recipes/long.yaml"}
    (project.folder / "prefect.yaml").write_text(yaml.safe_dump(deployments), "utf-8")
    automations = yaml.safe_load((REPOSITORY / "automations.yaml").read_text("utf-8"))
    automations["automations"][0]["trigger"]["within"] = 90  # seconds, three heartbeats
    (project.folder / "automations.yaml").write_text(yaml.safe_dump(automations), "utf-8")
    with started_up(person(project.folder), tmp_path_factory.mktemp("up")) as up:
        yield up


def wait_until(what: str, seconds: float, happens) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(1)
    return found


def start(up: Up, *overrides: str) -> Any:
    """Start a run of the weekly deployment."""
    (weekly,) = up.ask("deployments/filter", {"deployments": {"name": {"any_": ["weekly"]}}})
    asked = {"state": {"type": "SCHEDULED"}, "parameters": {"overrides": overrides}}
    return up.ask(f"deployments/{weekly['id']}/create_flow_run", asked)


def states(up: Up, run: Any) -> list[str]:
    """Names of the states that a run has been in."""
    return [state["name"] for state in up.ask(f"flow_run_states/?flow_run_id={run['id']}")]


def test_a_run_whose_worker_was_killed_completes_by_itself(up: Up):
    home = up.person.home
    run = start(up)
    wait_until("a checkpoint", 300, lambda: checkpoints(home))
    killed = 0
    for process in living(home):
        words = " ".join(process.cmdline())
        if "worker start" in words or "prefect.engine" in words or "prefect.flow_engine" in words:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
    assert killed >= 2, [process.cmdline() for process in living(home)]
    assert checkpoints(home)[-1] < STEPS

    def ended() -> Any:
        state = up.ask(f"flow_runs/{run['id']}")
        return state if state["state_type"] in ("COMPLETED", "FAILED", "CANCELLED") else None

    last = wait_until("the end of the run", RUN_SECONDS, ended)
    log = (home / "logs" / "worker.log").read_text("utf-8", "replace")
    assert last["state_type"] == "COMPLETED", f"{last['state']['message']}\n{log[-3000:]}"
    assert last["run_count"] == 2
    assert "the worker has ended; it is started again" in up.said.read_text("utf-8")

    stage = [r for r in runs(home) if r.data.tags.get("fourstage.stage") == "general"]
    history = client_of(home).get_metric_history(stage[0].info.run_id, "loss")
    steps = [point.step for point in history]
    assert len(stage) == 1
    assert steps == sorted(set(steps))
    assert steps[-1] == STEPS
    assert statuses(home)["RUNNING"] == 0
    traced = up.person.types("trace", "models:/long@champion", "--json")
    assert traced.code == 0, traced.told()
    assert traced.json["model"]["version"] == 1
    assert {"Crashed", "AwaitingRetry"} <= set(states(up, run))


def test_a_run_that_somebody_cancels_while_it_trains_is_never_crashed(up: Up):
    run = start(up, "seed=23")  # a network of its own
    wait_until("a checkpoint", 300, lambda: checkpoints(up.person.home))
    up.ask(f"flow_runs/{run['id']}/set_state", {"state": {"type": "CANCELLING"}})
    wait_until("its end", 120, lambda: states(up, run)[-1] == "Cancelled")
    assert states(up, run)[-3:] == ["Running", "Cancelling", "Cancelled"]
    called = {"flow_runs": {"parent_flow_run_id": {"any_": [run["id"]]}}}
    ends = sorted(each["state_name"] for each in up.ask("flow_runs/filter", called))
    assert ends == ["Cancelled", "Completed"]  # training, preparing
