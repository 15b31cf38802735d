"""Killed anywhere and run again, a lifecycle ends as if nothing had happened (S35 to S39)."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.always import running, what_always_holds
from tests.flows.conftest import person, project  # noqa: F401  fixtures
from tests.flows.own_project import Project, recipe, stages
from tests.flows.person import Answer, Person, answer_of, living
from tests.flows.test_interrupt import LONGEST, checkpoints, client_of, runs

pytestmark = pytest.mark.slow

KILLS = 20
COMMAND = ("run", "small", "--json")
STAGES = ("general", "domain", "task", "finetune")


@dataclass(frozen=True)
class Quiet:
    """A run that nobody disturbed.

    Attributes:
        answer: What it said.
        seconds: How long it took.
        weights: Digest of each stage's weights.
    """

    answer: Answer
    seconds: float
    weights: dict[str, str]


def weights(answer: Answer) -> dict[str, str]:
    return {stage["stage"]: stage["weights_digest"] for stage in answer.json["stages"]}


@pytest.fixture(scope="module")
def quiet(person: Callable[..., Person], project: Project) -> Quiet:  # noqa: F811
    answer = person(project.folder).types(*COMMAND)
    assert answer.code == 0, answer.told()
    return Quiet(answer, answer.seconds, weights(answer))


def kill_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finished(home: Path) -> dict[str, str]:
    """When each finished entry was made, by kind and key."""
    manifests = (home / "store").glob("*/*/manifest.json")
    return {str(m.parent): json.loads(m.read_text("utf-8"))["created"] for m in manifests}


def ends_as_if_nothing_had_happened(user: Person, quiet: Quiet, before: dict[str, str]) -> None:
    """The last run's answer, the registry, MLflow, Prefect and the processes."""
    home = user.home
    answer = user.types(*COMMAND)
    what_always_holds(home, answer, 0)
    assert weights(answer) == quiet.weights
    assert answer.json["metrics"] == quiet.answer.json["metrics"]
    assert answer.json["model"] == {"name": "small", "version": 1, "aliases": ["champion"]}
    assert before.items() <= finished(home).items()  # nothing that was finished was made again
    of_stages = [r for r in runs(home) if r.data.tags.get("fourstage.kind") == "stage"]
    assert Counter(r.data.tags["fourstage.stage"] for r in of_stages) == dict.fromkeys(STAGES, 1)
    assert {r.info.status for r in of_stages} == {"FINISHED"}
    for run in of_stages:
        history = client_of(home).get_metric_history(run.info.run_id, "loss")
        assert [p.step for p in history] == sorted({p.step for p in history})
    assert rows(home / "mlflow.db", "select version from model_versions") == [(1,)]
    states = rows(home / "prefect" / "prefect.db", "select distinct state_type from flow_run")
    assert not {state for (state,) in states} & {"RUNNING", "PENDING"}
    assert living(home) == []


def rows(database: Path, question: str) -> list[tuple[Any, ...]]:
    """What a database answers; nothing while it has no such table."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as connection:
        try:
            return connection.execute(question).fetchall()
        except sqlite3.OperationalError:
            return []


def test_twenty_kills_at_random_moments(person, project, quiet: Quiet, capsys):  # noqa: F811
    """S35: each lifecycle is killed until one run of it comes through; all end the same."""
    seed = int(os.environ.get("FOURSTAGE_KILL_SEED", time.time_ns() % 1_000_000))
    with capsys.disabled():
        sys.stderr.write(f"\nFOURSTAGE_KILL_SEED={seed}\n")
    moments = random.Random(seed)
    kills = 0
    while kills < KILLS:
        user = person(project.folder)
        while kills < KILLS:
            before = finished(user.home)
            process = user.start(*COMMAND)
            try:
                process.communicate(timeout=moments.uniform(0.5, quiet.seconds))
            except subprocess.TimeoutExpired:
                kill_group(process)
                kills += 1
                assert before.items() <= finished(user.home).items()
            else:
                break
        ends_as_if_nothing_had_happened(user, quiet, finished(user.home))


def entry_of(home: Path, stage: str) -> list[Path]:
    """The finished entry of a stage."""
    return [
        manifest.parent
        for manifest in (home / "store" / "stage").glob("*/manifest.json")
        if json.loads(manifest.read_text("utf-8"))["name"] == f"stage {stage}"
    ]


def has_table(database: Path, table: str) -> list[tuple[Any, ...]]:
    return rows(database, f"select 1 from sqlite_master where name = '{table}'")


MOMENTS: dict[str, Callable[[Path], Any]] = {
    "making Prefect's tables": lambda home: has_table(home / "prefect" / "prefect.db", "flow"),
    "being known to Prefect alone": lambda home: rows(
        home / "prefect" / "prefect.db", "select 1 from flow_run where state_type = 'RUNNING'"
    ),
    "making MLflow's tables": lambda home: has_table(home / ".mlflow.db.part", "alembic_version"),
    "writing a checkpoint": lambda home: list((home / "store/stage").glob("*/checkpoints/.*.part")),
    "committing a stage": lambda home: entry_of(home, "domain"),
    "logging to MLflow": lambda home: rows(
        home / "mlflow.db",
        "select 1 from metrics join tags using (run_uuid) where tags.key = 'fourstage.stage' and"
        " tags.value = 'task' and metrics.key = 'loss'",
    ),
    "registering": lambda home: rows(home / "mlflow.db", "select 1 from registered_models"),
    "having moved the alias": lambda home: rows(
        home / "mlflow.db", "select 1 from registered_model_aliases where alias = 'champion'"
    ),
}


def test_kills_in_the_middle_of_what_must_be_whole(person, project, quiet: Quiet):  # noqa: F811
    """S35: in a checkpoint, a commit, a log, a registration, a promotion."""
    user = person(project.folder)
    before: dict[str, str] = {}
    for moment, happens in MOMENTS.items():
        process = user.start(*COMMAND)
        while not happens(user.home):
            if process.poll() is not None:
                out, err = process.communicate()
                raise AssertionError(f"{moment} was not seen\n{out[-500:]}\n{err[-2000:]}")
            time.sleep(0.001)
        kill_group(process)
        assert before.items() <= finished(user.home).items()
        before = finished(user.home)
    ends_as_if_nothing_had_happened(user, quiet, before)


def test_two_equal_runs_at_once_train_each_stage_once(person, project, quiet: Quiet):  # noqa: F811
    """S37: one trains, the other waits and reuses; one version."""
    user = person(project.folder)
    began = time.monotonic()
    both = [user.start(*COMMAND) for _ in range(2)]
    answers = [answer_of(process, began) for process in both]
    for answer in answers:
        what_always_holds(user.home, answer, 0)
        assert weights(answer) == quiet.weights
    trained = Counter(
        stage["stage"]
        for answer in answers
        for stage in answer.json["stages"]
        if stage["status"] == "trained"
    )
    assert trained == dict.fromkeys(STAGES, 1)
    assert {answer.json["model"]["version"] for answer in answers} == {1}


@pytest.fixture(scope="module")
def long(project: Project) -> tuple[str, ...]:  # noqa: F811
    """A run that trains long enough to be met at it."""
    four = stages(general={"budget": {"steps": 3000}})
    project.recipe(recipe("long", stages=four[:1], evaluate=None, promote=None))
    return ("run", "long", "--json")


def until_it_trains(process: subprocess.Popen[str], home: Path, after: int = 0) -> None:
    deadline = time.monotonic() + 300
    while not any(step > after for step in checkpoints(home)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def interrupted(person, project, long) -> Iterator[Person]:  # noqa: F811
    """Someone whose long run is ended by the test."""
    user = person(project.folder)
    yield user
    for process in living(user.home):
        process.kill()


def test_ctrl_c_twice_is_one_line_and_the_run_goes_on(interrupted: Person, long):
    """S38: the second one, a moment later, changes nothing."""
    process = interrupted.start(*long)
    began = time.monotonic()
    until_it_trains(process, interrupted.home)
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
    answer = answer_of(process, began, LONGEST)
    what_always_holds(interrupted.home, answer, 130, "run the same command again to go on")
    assert living(interrupted.home) == []
    step = checkpoints(interrupted.home)[-1]
    again = interrupted.start(*long)
    until_it_trains(again, interrupted.home, step)
    kill_group(again)


def test_where_only_the_parent_is_killed_nothing_is_left(interrupted: Person, long):
    """S39: no trainer without a parent, no server without a run, and nothing to wait for."""
    process = interrupted.start(*long)
    until_it_trains(process, interrupted.home)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(living(interrupted.home), timeout=30)
    assert alive == [], [each.cmdline() for each in alive]
    assert running(interrupted.home) > 0  # nobody was left to close them
    again = interrupted.start(*long)
    until_it_trains(again, interrupted.home, checkpoints(interrupted.home)[-1])
    assert running(interrupted.home) == 2  # its own lifecycle and stage; the dead are closed
    kill_group(again)


def test_a_server_whose_guard_was_killed_too_is_ended_by_the_next_start(interrupted: Person, long):
    process = interrupted.start(*long)
    until_it_trains(process, interrupted.home)
    (guard,) = [each for each in living(interrupted.home) if "guard.py" in " ".join(each.cmdline())]
    (server,) = guard.children()
    guard.kill()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert server.is_running()
    again = interrupted.start(*long)
    until_it_trains(again, interrupted.home, checkpoints(interrupted.home)[-1])
    server.wait(10)
    kill_group(again)
