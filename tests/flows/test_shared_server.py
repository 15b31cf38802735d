"""What lies on a Prefect server that others use too touches our runs alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from fourstage.errors import EnvironmentFault
from fourstage.settings import PRIVATE_ENVIRONMENT, REPOSITORY, TAG
from tests.flows.person import end
from tests.flows.webhook import webhook

AUTOMATIONS = REPOSITORY / "automations.yaml"
SHORTEST = 10  # seconds, of Prefect's triggers that wait for what does not come
SLEEPER = """
import sys, time
from prefect import flow, tags

@flow
def called():
    time.sleep(600)

@flow
def caller():
    called()

with tags(*sys.argv[1:]):
    caller()
"""


@pytest.fixture(scope="module")
def client(prefect_server: str) -> Iterator[Any]:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: prefect_server}):
        with get_client(sync_client=True) as client:
            yield client


def wait_until(what: str, happens: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.2)
    return found


def put(tmp_path: Path, within: int) -> list[str]:
    """Put our automations on the server, with another window."""
    from tasks.orchestration.automations import put_automations

    document = yaml.safe_load(AUTOMATIONS.read_text("utf-8"))
    document["automations"][0]["trigger"]["within"] = within
    file = tmp_path / "automations.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    return put_automations(file)


def test_an_automation_is_updated_where_it_is_and_stays_paused(client, tmp_path):
    from prefect.events.schemas.automations import AutomationCore

    (name,) = put(tmp_path, 300)
    (first,) = client.read_automations_by_name(name)
    client.pause_automation(first.id)
    client.create_automation(AutomationCore.model_validate(first.model_dump()))  # as Prefect's CLI
    put(tmp_path, 400)
    (second,) = client.read_automations_by_name(name)
    assert second.id == first.id
    assert not second.enabled
    assert second.trigger.within.total_seconds() == 400
    client.resume_automation(first.id)


def sleeper(prefect_server: str, folder: Path, *tags: str) -> subprocess.Popen[str]:
    """A process in which a flow calls another that sleeps; it sends one heartbeat at its start."""
    return subprocess.Popen(
        [sys.executable, "-c", SLEEPER, *tags],
        cwd=folder,
        env=os.environ
        | PRIVATE_ENVIRONMENT
        | {"PREFECT_API_URL": prefect_server, "PREFECT_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def runs_of(client: Any, **filters: Any) -> list[Any]:
    from prefect.client.schemas.filters import FlowRunFilter

    return client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(filters))


def heard_of(client: Any, run: UUID) -> bool:
    """Whether the server has a heartbeat of a run, without which no silence is noticed."""
    asked = {
        "event": {"name": ["prefect.flow-run.heartbeat"]},
        "resource": {"id": [f"prefect.flow-run.{run}"]},
    }
    return client.request("POST", "/events/filter", json={"filter": asked}).json()["total"] > 0


def called_by(client: Any, run: UUID) -> list[Any]:
    return runs_of(client, parent_flow_run_id={"any_": [run]})


def test_a_silent_run_of_another_team_is_let_be_and_ours_is_dead(
    client, prefect_server: str, tmp_path: Path
):
    from tasks.orchestration.dead_runs import resume_dead_runs

    put(tmp_path, SHORTEST)
    processes = [sleeper(prefect_server, tmp_path, tag) for tag in (TAG, "another-team")]
    try:
        ours, others = (
            wait_until(
                "a flow calls another",
                lambda tag=tag: [
                    run
                    for run in runs_of(client, tags={"all_": [tag]}, name=None)
                    if run.state.is_running()
                    and run.parent_task_run_id is None
                    and any(each.state.is_running() for each in called_by(client, run.id))
                ],
            )[0]
            for tag in (TAG, "another-team")
        )
        for run in (ours, others):
            wait_until("a heartbeat", lambda run=run: heard_of(client, run.id))
        processes[0].kill()
        wait_until("ours is dead", lambda: client.read_flow_run(ours.id).state.is_crashed())
        time.sleep(5)  # another round of what looks at triggers
        assert client.read_flow_run(others.id).state.is_running()

        resume_dead_runs(3)
        assert all(each.state.is_crashed() for each in called_by(client, ours.id))
        assert all(each.state.is_running() for each in called_by(client, others.id))
    finally:
        put(tmp_path, 300)  # the other tests' runs have more time
        for process in processes:
            end(process)


def crashed_run(client: Any, name: str, tags: list[str], seconds: float = 0) -> UUID:
    """A run of a deployment that started and crashed after some seconds."""
    from prefect.states import Crashed, Running

    flow = client.create_flow_from_name(name)
    deployment = client.create_deployment(flow, name, tags=tags, enforce_parameter_schema=False)
    run = client.create_flow_run_from_deployment(deployment)
    client.set_flow_run_state(run.id, Running(), force=True)
    time.sleep(seconds)
    client.set_flow_run_state(run.id, Crashed(), force=True)
    return run.id


def test_dead_runs_of_our_resumable_deployments_go_on_and_no_others(client):
    from tasks.orchestration.dead_runs import RESUMABLE, resume_dead_runs

    ours = crashed_run(client, "ours", [TAG, RESUMABLE])
    once = crashed_run(client, "once", [TAG])
    others = crashed_run(client, "others", [RESUMABLE])
    resume_dead_runs(3)
    states = {run: client.read_flow_run(run).state.name for run in (ours, once, others)}
    assert states == {ours: "AwaitingRetry", once: "Crashed", others: "Crashed"}


def test_a_run_with_an_unknown_parameter_is_not_started_again(client):
    """Prefect's bare API takes it; the run's process ends before the flow begins."""
    from prefect.states import Crashed
    from prefect.utilities.callables import parameter_schema

    from flows.refresh import refresh
    from tasks.orchestration.dead_runs import RESUMABLE, resume_dead_runs

    schema = parameter_schema(refresh).model_dump(exclude_unset=True)
    deployment = client.create_deployment(
        client.create_flow_from_name("asked"),
        "asked",
        tags=[TAG, RESUMABLE],
        parameter_openapi_schema=schema,
    )
    make = client.create_flow_run_from_deployment
    unknown, known = (
        make(deployment, parameters={"recipe": "a", **more}).id for more in ({"smok": True}, {})
    )
    for run in (unknown, known):  # neither flow began
        client.set_flow_run_state(run, Crashed(), force=True)
    resume_dead_runs(3)
    assert client.read_flow_run(known).state.name == "AwaitingRetry"
    state = client.read_flow_run(unknown).state
    assert state.is_failed()
    assert "'smok' is not a parameter of its flow" in state.message
    assert "Known: overrides, recipe." in state.message


def test_a_run_that_died_on_its_second_day_goes_on(client, monkeypatch: pytest.MonkeyPatch):
    from tasks.orchestration import dead_runs

    began = datetime.now(UTC)
    run = crashed_run(client, "long", [TAG, dead_runs.RESUMABLE], seconds=6)
    day = datetime.now(UTC) - began - timedelta(seconds=1)  # it began longer ago, and died within
    monkeypatch.setattr(dead_runs, "OLDEST", day)
    dead_runs.resume_dead_runs(3)
    assert client.read_flow_run(run).state.name == "AwaitingRetry"


def test_a_run_of_another_machine_is_closed_once_prefect_knows_that_it_is_over(
    client, tmp_path: Path
):
    """A container's name is gone with it, so that nobody can look for its process any more."""
    from tasks.orchestration.processes import FLOW_RUN, HOST
    from tasks.tracking.connection import connect
    from tasks.tracking.orphans import close_orphans
    from tasks.tracking.runs import ensure_experiment, stage_run, start_lifecycle

    tracking = connect(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path)
    crashed = crashed_run(client, "elsewhere", [TAG])
    running = client.create_flow_run_from_deployment(
        client.read_flow_run(crashed).deployment_id, state=None
    ).id
    elsewhere = {HOST: "a-container-that-is-gone"}
    over, under_way, unknown = (
        start_lifecycle(tracking, "demo", tags=elsewhere | {FLOW_RUN: str(run)})
        for run in (crashed, running, UUID(int=0))
    )
    experiment = ensure_experiment(tracking, "demo")
    keys = {over: "a" * 64, under_way: "b" * 64}
    stage, other = (
        stage_run(tracking, experiment, key, stage="general", parent_run_id=run, tags=elsewhere)
        for run, key in keys.items()
    )
    assert set(close_orphans(tracking)) == {over, stage}
    status = {run: tracking.client.get_run(run).info.status for run in (under_way, unknown, other)}
    assert set(status.values()) == {"RUNNING"}


@pytest.mark.slow
def test_more_runs_than_a_page_of_the_server_holds_are_known_to_be_over(client):
    from prefect.states import Completed

    from tasks.orchestration.orphans import over

    flow = client.create_flow_from_name("many")
    deployment = client.create_deployment(
        flow, "many", tags=["another-team"], enforce_parameter_schema=False
    )
    make = client.create_flow_run_from_deployment
    ended = {str(make(deployment, state=Completed()).id) for _ in range(201)}
    assert over(ended | {str(make(deployment).id)}) == ended


def test_our_deployments_that_a_file_no_longer_names_are_removed_and_no_others(client, tmp_path):
    from prefect.client.schemas.filters import DeploymentFilter

    from tasks.orchestration.deployments import remove_left_over

    def there() -> set[str]:
        names = {"any_": ["named", "left-over", "another-teams"]}
        chosen = DeploymentFilter.model_validate({"name": names})
        return {each.name for each in client.read_deployments(deployment_filter=chosen)}

    flow = client.create_flow_from_name("some-flow")
    for name, tag in (("named", TAG), ("left-over", TAG), ("another-teams", "another-team")):
        client.create_deployment(
            flow, name, tags=[tag], entrypoint="flows.a:a", enforce_parameter_schema=False
        )
    file = tmp_path / "prefect.yaml"
    file.write_text("deployments: [{name: named, entrypoint: 'flows.a:a'}]", "utf-8")
    assert "flows.a:a left-over" in remove_left_over(file)
    assert there() == {"named", "another-teams"}
    remove_left_over(None)
    assert there() == {"another-teams"}


TELLER = """
from prefect import flow, tags
from prefect.states import Completed, Failed
from tasks.orchestration.events import announce
from tasks.orchestration.failures import ended

@flow(flow_run_name="{name}")
def tells(name: str):
    if name == "refused":
        return Completed(name="Refused", message="a text nobody is to read")
    if name == "waiting":
        return ended({"decision": "wait", "reason": "a text nobody is to read"})
    if name == "failed":
        return Failed(message="a text nobody is to read")
    announce("fourstage.drift", "source", "notes", score=0.5)
    announce("fourstage.contract.amber", "contract", "notes", recipe="small", quarantined=3)
    announce("fourstage.promoted", "model", "small", version=2, replaced=1)

with tags("fourstage"):
    for name in ("refused", "waiting", "failed", "well"):
        tells(name, return_state=True)
tells("failed", return_state=True)  # another team's
"""


def test_a_webhook_is_told_of_what_happened_in_names_numbers_and_links(
    client, prefect_server: str, tmp_path: Path, monkeypatch
):
    from tasks.orchestration.automations import put_automations

    file = REPOSITORY / "notifications.yaml"
    with pytest.raises(EnvironmentFault, match="FOURSTAGE_WEBHOOK"):
        put_automations(file)
    with webhook() as heard:
        monkeypatch.setenv("FOURSTAGE_WEBHOOK", heard.address)
        names = put_automations(file)
        assert len(names) == 6
        monkeypatch.delenv("FOURSTAGE_WEBHOOK")
        put_automations(file)  # the server has kept the address
        subprocess.run(
            [sys.executable, "-c", TELLER],
            cwd=tmp_path,
            env=os.environ
            | PRIVATE_ENVIRONMENT
            | {"PREFECT_API_URL": prefect_server, "PREFECT_HOME": str(tmp_path)}
            | {"PYTHONPATH": str(REPOSITORY)},
            check=True,
            timeout=120,
        )
        wait_until("the last message", lambda: len(heard.told) >= 6, 90)
        time.sleep(2)  # no others come
    told = {message["event"]: message for message in heard.told}
    # Prefect delivers at least once: on a busy machine a message of one run has come twice.
    distinct = {(each["event"], each["name"], each["page"]) for each in heard.told}
    assert sorted((event, name) for event, name, _ in distinct) == [
        ("fourstage.contract.amber", "notes"),
        ("fourstage.drift", "notes"),
        ("fourstage.promoted", "small"),
        ("prefect.flow-run.AwaitingApproval", "waiting"),
        ("prefect.flow-run.Failed", "failed"),
        ("prefect.flow-run.Refused", "refused"),
    ]
    assert told["fourstage.promoted"]["numbers"] == {"version": 2, "replaced": 1}
    assert all("/runs/flow-run/" in message["page"] for message in heard.told)
    assert "nobody is to read" not in json.dumps(heard.told)
