"""S49 and S50: a full disk, a limit on it, few file descriptors; what is finished stays whole."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.always import what_always_holds
from tests.faults.desk import Desk, on_corpora
from tests.faults.finished_home import Finished, small
from tests.flows.own_project import Project
from tests.flows.person import Answer, Person, answer_of, end_all

MEGABYTE = 1 << 20

# Every step that writes files, a stage's checkpoints apart, under a limit that its outputs exceed:
# made again, where an entry of it was taken away.
WRITERS = """
import json, resource, shutil, sys
from fourstage.settings import make_private
make_private()
import flows
from fourstage.errors import EnvironmentFault
from tasks.store.artifacts import Artifact, Missing
from tasks.store.artifacts import store
from tasks.planning.plan import plan_recipe
from tasks.store.steps import bind
from tasks.run.recipe_run import TASKS

made, told = {}, {}
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for name, step in plan_recipe(sys.argv[1]).steps.items():
    bound = bind(step, made)
    found = store().find(step.kind, bound.key)
    if step.kind == "evaluation":  # of a SavedModel whose bytes are new
        TASKS[step.kind].fn(bound)
        found = store().find(step.kind, bound.key)
    assert isinstance(found, Artifact), (name, found)
    if step.kind != "stage" and step.kind not in told:
        size = max((found.folder / output).stat().st_size for output in found.outputs)
        shutil.rmtree(found.folder)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
        try:
            TASKS[step.kind].fn(bound)
        except EnvironmentFault as fault:
            told[step.kind] = str(fault)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert isinstance(store().find(step.kind, bound.key), Missing), name
        TASKS[step.kind].fn(bound)
        found = store().find(step.kind, bound.key)
        assert isinstance(found, Artifact), (name, found)
    made[name] = found
print("TOLD", json.dumps(told))
"""


def limited(person: Person, what: int, most: int, *words: str) -> Answer:
    """A command in a process of its own that may have no more of something."""
    began = time.monotonic()
    process = person.start(*words)
    resource.prlimit(process.pid, what, (most, most))
    return answer_of(process, began)


def made(home: Path) -> dict[str, str]:
    """When each finished entry was made."""
    manifests = (home / "store").glob("*/*/manifest.json")
    return {str(m.parent): json.loads(m.read_text("utf-8"))["created"] for m in manifests}


@pytest.mark.slow
def test_every_writer_says_that_there_is_no_space_and_leaves_no_entry(
    finished: Finished, tmp_path: Path
):
    """S49, at the largest output of each kind of step."""
    person = finished.copy(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WRITERS, "small"],
        cwd=person.folder,
        env=person.variables(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    told = json.loads(line.removeprefix("TOLD "))
    kinds = {"corpus", "dataset", "contract", "tokenizer", "tokens", "rows", "package"}
    assert {*kinds, "baseline", "measurement", "evaluation"} == set(told)
    for kind, said in told.items():
        assert f"no space for {kind}/" in said, said
        assert "make room or set FOURSTAGE_HOME" in said


@pytest.mark.slow
def test_a_disk_that_is_full_in_the_middle_keeps_what_is_finished(tmp_path: Path):
    """S49: no file may grow beyond 4 MB, that of Prefect's database among them."""
    project = Project(tmp_path / "project")
    recipe = small(size="tiny", promote=None)  # its checkpoints have 6 MB
    recipe["stages"][0]["budget"] = {"steps": 200}
    project.recipe(recipe)
    person = Person(tmp_path / "home", project.folder)
    command = ("run", "small", "--json")
    try:
        full = limited(person, resource.RLIMIT_FSIZE, 4 * MEGABYTE, *command)
        before = made(person.home)
        what_always_holds(person.home, full, 1, r"no space for .*\d MB", "run .*again")
        assert before, full.told()
        with_room = person.types(*command)
        what_always_holds(person.home, with_room, 0)
        after = made(person.home)
        assert before.items() <= after.items()  # none of them was made again
        assert len(after) > len(before)
    finally:
        end_all(person.home)


def test_a_limit_on_the_disk_ends_a_run_between_steps_and_at_checkpoints(desk: Desk):
    """What counts is what this run made; the steps before it, made by others, do not."""
    # Checkpoints of this size have more than a megabyte.
    recipe = {**on_corpora("mine", budget={"steps": 12}), "size": "tiny", "seed": 49}
    answer = desk.runs({**recipe, "limits": {"disk_gb": 0.001}})
    said = (
        r"limits.disk_gb \(1.0 MB were left for this stage, its files take \d+.\d MB\) at step 10"
    )
    desk.holds(answer, 1, said, "a checkpoint was written, run the same command to go on")
    recipe["tokenizer"] = {"vocabulary_size": 410}
    answer = desk.runs({**recipe, "limits": {"disk_gb": 1e-6}})
    desk.holds(answer, 1, r"tokenizer: stopped by limits.disk_gb: .* 0.0 MB are allowed")
    desk.holds(desk.runs({**recipe, "limits": {"disk_gb": 1.0}}), 0)


@pytest.mark.slow
@pytest.mark.parametrize("most", [64, 24])
def test_few_file_descriptors_are_enough_or_are_named(
    finished: Finished, tmp_path: Path, most: int
):
    """S50."""
    person = Person(tmp_path / "home", finished.project)
    try:
        answer = limited(person, resource.RLIMIT_NOFILE, most, "run", "small", "--json")
        if answer.code == 0:
            what_always_holds(person.home, answer, 0)
        else:
            what_always_holds(person.home, answer, 1, f"too many open files.* {most};")
            what_always_holds(person.home, person.types("run", "small", "--json"), 0)
    finally:
        end_all(person.home)
