"""What a plan opens grows with its recipe, not with the square of it or with the store's age."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import MANIFEST, Artifact, Store
from tests.flows.own_project import document
from tests.flows.person import Person
from tests.tasks.crowded_store import age, make_small, wide_project

SOURCES = 100
VERSIONS = 9  # and the newest, of 202 entries each: 2,000 in all
# The command, in a process that notes every file it opens.
NOTING = """
import json, sys
from fourstage.command import main

opened = []
sys.addaudithook(lambda event, facts: event == "open" and opened.append(str(facts[0])))
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as notes:
    json.dump(opened, notes)
sys.exit(code)
"""


@dataclass
class Wide:
    """A wide recipe of whose steps the store has those that read files, in many versions."""

    home: Path
    recipe: Path
    entries: int

    def plan(self, notes: Path) -> tuple[dict[str, dict], Counter[str]]:
        """What ``fourstage plan --json`` says by step, and how often it opened which file."""
        done = subprocess.run(
            [sys.executable, "-c", NOTING, notes, "plan", str(self.recipe), "--json"],
            env=Person(self.home, self.recipe.parent).variables(),
            cwd=self.recipe.parent,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        steps = {row["step"]: row for row in json.loads(done.stdout)["steps"]}
        return steps, Counter(json.loads(notes.read_text()))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Wide:
    home = tmp_path_factory.mktemp("home")
    _, recipe = wide_project(tmp_path_factory.mktemp("wide") / "project", SOURCES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOURSTAGE_HOME", str(home))
        steps = [
            step
            for step in plan_recipe(str(recipe)).of_kind("dataset", "corpus", "contract")
            if "tokens" not in step.name
        ]
    store = Store(home)
    made = make_small(store, steps)
    age(store, made.values(), VERSIONS)
    entries = list(store.root.glob(f"*/*/{MANIFEST}"))
    some = entries[7]
    assert isinstance(store.find(some.parent.parent.name, some.parent.name), Artifact)
    return Wide(home, recipe, len(entries))


def manifests(opened: Counter[str]) -> dict[str, int]:
    """How often each was read; one that is looked for and not there is opened, too."""
    return {
        path: times
        for path, times in opened.items()
        if path.endswith(MANIFEST) and Path(path).exists()
    }


def test_a_plan_of_many_sources_reads_each_source_once(wide: Wide, tmp_path: Path):
    steps, opened = wide.plan(tmp_path / "opened")
    assert sum(row["kind"] == "corpus" for row in steps.values()) == SOURCES
    read = {path: times for path, times in opened.items() if "/sources/notes" in path}
    assert set(read.values()) == {1}
    assert len(read) == SOURCES
    remembered = {Path(path).name: n for path, n in opened.items() if path.endswith("s.jsonl")}
    remembered.pop("code-digests.jsonl")  # a line is added to it for every kind of step
    assert remembered == {"digests.jsonl": 1, "file-digests.jsonl": 1}
    # The step that waits for 200 others says so in a line.
    assert len(steps["tokenizer"]["why"][0]) < 300


def test_what_is_reused_is_read_and_no_older_version_of_it(wide: Wide, tmp_path: Path):
    steps, opened = wide.plan(tmp_path / "opened")
    reused = Counter(row["kind"] for row in steps.values() if row["status"] == "reused")
    assert reused == {"dataset": 1, "corpus": SOURCES, "contract": SOURCES + 1}
    assert wide.entries >= 2_000
    read = manifests(opened)
    assert len(read) == reused.total()
    assert set(read.values()) == {1}


def test_the_history_is_read_once_however_many_steps_changed(wide: Wide, tmp_path: Path):
    for number in range(SOURCES):
        file = wide.recipe.parent.parent / "data" / f"notes{number:03d}.jsonl"
        file.write_text(json.dumps(document(5000 + number)) + "\n", "utf-8")
    steps, opened = wide.plan(tmp_path / "opened")
    changed = [row["why"] for row in steps.values() if row["kind"] == "corpus"]
    assert len(changed) == SOURCES
    assert all(len(why) == 1 and why[0].startswith("settings.snapshot: ") for why in changed)
    read = {path: times for path, times in manifests(opened).items() if "/corpus/" in path}
    assert len(read) == SOURCES * (VERSIONS + 1)
    assert set(read.values()) == {1}
