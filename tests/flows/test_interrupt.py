"""Stopped at any moment and run again, a stage goes on from its checkpoint and ends the same.

One home is disturbed again and again, the other is not; both train the same recipe.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.flows.own_project import Project, recipe
from tests.flows.person import Answer, Person, answer_of, living

pytestmark = pytest.mark.slow

STEPS = 1000
LONGEST = 25  # seconds from signal to exit; Prefect's worker kills after 30


@dataclass
class Story:
    """What happened in the disturbed home, in order, and in the quiet one."""

    disturbed: Person
    quiet: Person
    told: dict[str, Answer] = field(default_factory=dict)
    checkpoints: dict[str, list[int]] = field(default_factory=dict)
    seconds_to_end: dict[str, float] = field(default_factory=dict)
    left_running: dict[str, list[Any]] = field(default_factory=dict)
    mlflow_running: dict[str, int] = field(default_factory=dict)


def checkpoints(home: Path) -> list[int]:
    """Steps of the checkpoints written so far."""
    found = (home / "store" / "stage").glob("*/checkpoints/step-*")
    return sorted(int(path.name.removeprefix("step-")) for path in found)


def wait_for_checkpoint(process: subprocess.Popen[str], home: Path, after: int) -> None:
    """Until a checkpoint of a later step than `after` is written."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if any(step > after for step in checkpoints(home)):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    out, err = process.communicate(timeout=60)
    raise AssertionError(f"no checkpoint; exit {process.returncode}\n{out}\n{err[-3000:]}")


@pytest.fixture(scope="module")
def story(person, project: Project, prefect_server: str) -> Story:
    stages = [{**recipe()["stages"][0], "budget": {"steps": STEPS}}]
    path = project.recipe(recipe("long", stages=stages, evaluate=None, promote=None))
    command = ("run", str(path), "--json")
    found = Story(
        person(project.folder, PREFECT_API_URL=prefect_server),
        person(project.folder, PREFECT_API_URL=prefect_server),
    )
    quiet = found.quiet.start(*command)
    began = time.monotonic()
    home = found.disturbed.home
    seen = 0
    for name, number in (("terminated", signal.SIGTERM), ("interrupted", signal.SIGINT)):
        process = found.disturbed.start(*command)
        start = time.monotonic()
        wait_for_checkpoint(process, home, seen)
        asked = time.monotonic()
        process.send_signal(number)
        found.told[name] = answer_of(process, start, 60)
        found.seconds_to_end[name] = time.monotonic() - asked
        found.checkpoints[name] = checkpoints(home)
        seen = found.checkpoints[name][-1]
        found.left_running[name] = living(home)
        found.mlflow_running[name] = statuses(home)["RUNNING"]
    killed = found.disturbed.start(*command)
    wait_for_checkpoint(killed, home, seen)
    killed.kill()
    killed.communicate()
    found.mlflow_running["killed"] = statuses(home)["RUNNING"]
    found.checkpoints["killed"] = checkpoints(home)
    limit = ("--set", "limits.minutes=0.001")
    found.told["deadline"] = found.disturbed.types(*command, *limit)
    found.mlflow_running["deadline"] = statuses(home)["RUNNING"]
    found.checkpoints["deadline"] = checkpoints(home)
    found.told["finished"] = found.disturbed.types(*command)
    found.told["quiet"] = answer_of(quiet, began)
    return found


def client_of(home: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{home / 'mlflow.db'}")


def runs(home: Path) -> list[Any]:
    client = client_of(home)
    return list(client.search_runs([e.experiment_id for e in client.search_experiments()]))


def statuses(home: Path) -> Counter[str]:
    return Counter(run.info.status for run in runs(home))


@pytest.mark.parametrize(("name", "code"), [("terminated", 143), ("interrupted", 130)])
def test_a_signal_ends_a_run_in_time_with_its_code_and_what_to_do(story: Story, name, code):
    answer = story.told[name]
    assert answer.code == code, answer.told()
    assert story.seconds_to_end[name] < LONGEST
    assert "a checkpoint was written, run the same command to go on" in answer.err, answer.told()
    assert "run the same command again to go on" in answer.err, answer.told()
    assert "Traceback" not in answer.err, answer.told()
    assert answer.out == ""
    assert story.left_running[name] == []


def test_a_deadline_is_a_fault_of_the_environment_that_can_be_resumed(story: Story):
    answer = story.told["deadline"]
    assert answer.code == 1, answer.told()
    assert "run the same command" in answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert story.checkpoints["deadline"][-1] >= story.checkpoints["killed"][-1]


def test_each_start_goes_on_from_the_step_before(story: Story):
    names = ("terminated", "interrupted", "killed", "deadline")
    last = [story.checkpoints[name][-1] for name in names]
    assert last == sorted(last)
    assert 0 < last[0] < last[1] < last[2] < STEPS
    for name, found in story.checkpoints.items():
        # The last two are kept; a kill may come before the third is removed.
        assert len(found) <= (3 if name == "killed" else 2), name


def test_weights_are_those_of_an_undisturbed_run_to_the_bit(story: Story):
    disturbed, quiet = story.told["finished"], story.told["quiet"]
    assert disturbed.code == 0, disturbed.told()
    assert quiet.code == 0, quiet.told()
    ours, theirs = disturbed.json["stages"][0], quiet.json["stages"][0]
    assert ours["steps"] == theirs["steps"] == STEPS
    assert ours["key"] == theirs["key"]
    assert ours["weights_digest"] == theirs["weights_digest"]
    assert ours["heldout_loss"] == theirs["heldout_loss"]
    assert ours["tokens"] == theirs["tokens"]
    # The whole entry but its notes: heads and configuration as well.
    assert digest_of(story.disturbed.home, ours["key"]) == digest_of(
        story.quiet.home, theirs["key"]
    )


def digest_of(home: Path, key: str) -> str:
    manifest = home / "store" / "stage" / key / "manifest.json"
    return json.loads(manifest.read_text(encoding="utf-8"))["digest"]


def test_mlflow_has_one_run_of_the_stage_and_no_step_twice(story: Story):
    client = client_of(story.disturbed.home)
    (stage,) = [
        run for run in runs(story.disturbed.home) if run.data.tags.get("fourstage.kind") == "stage"
    ]
    assert stage.info.status == "FINISHED"
    history = client.get_metric_history(stage.info.run_id, "loss")
    steps = [point.step for point in history]
    assert len(steps) == len(set(steps))
    assert steps == sorted(steps)
    assert steps[-1] == STEPS
    (other,) = [
        run for run in runs(story.quiet.home) if run.data.tags.get("fourstage.kind") == "stage"
    ]
    quiet = client_of(story.quiet.home).get_metric_history(other.info.run_id, "loss")
    assert [(p.step, p.value) for p in history] == [(p.step, p.value) for p in quiet]


def test_mlflow_has_nothing_running_after_a_signal_or_after_the_start_that_follows_a_kill(
    story: Story,
):
    assert story.mlflow_running["terminated"] == 0
    assert story.mlflow_running["interrupted"] == 0
    assert story.mlflow_running["killed"] == 2  # stage and lifecycle: nobody was left to close them
    assert story.mlflow_running["deadline"] == 0
    assert statuses(story.disturbed.home)["RUNNING"] == 0
    assert statuses(story.disturbed.home)["KILLED"] >= 3


def test_prefect_has_nothing_running_either(story: Story, prefect_server: str):
    def names(kind: str) -> list[str]:
        body = {"flow_runs": {"state": {"type": {"any_": [kind]}}}, "limit": 200}
        request = urllib.request.Request(
            f"{prefect_server}/flow_runs/filter",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return [run["name"] for run in json.load(answer) if "long" in run["name"]]

    assert names("RUNNING") == []
    # Two by a signal and one found dead by the next start, each with the flow of its stage.
    crashed = names("CRASHED")
    assert sum(name.startswith("lifecycle-") for name in crashed) == 3
    assert sum(name.startswith("pretrain-") for name in crashed) == 3
