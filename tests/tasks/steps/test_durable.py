"""Prefect's cache and the store never disagree: what is missing or damaged is made again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fourstage.settings import REPOSITORY
from tests.flows.databases import put_prefect

# One process, one embedded server: a step is performed, then its entry is harmed in some way.
STORY = """
import json, os, shutil
from pathlib import Path
from fourstage.settings import make_private
make_private()
import flows  # makes the home
from prefect import flow
from tasks.store.artifacts import Findings, store
from tasks.steps.durable import durable, perform
from tasks.store.steps import Step, bind
from fourstage.errors import EnvironmentFault

ran = []

@durable()
def prepare_corpus(step, folder, **extra):
    ran.append(step.step.name)
    (folder / "words.txt").write_text(step.step.settings["words"])
    if "fails" in extra:
        raise OSError(28, "No space left on device")
    return Findings({"words": 2})

def bound(words="one two"):
    return bind(Step("corpus notes", "corpus", {"words": words}), {})

story = []

@flow
def tell():
    def ask(what, words="one two", **extra):
        ran.clear()
        artifact, status = perform(prepare_corpus, bound(words), **extra)
        story.append([what, status, len(ran), artifact.digest])
        return artifact

    artifact = ask("new")
    ask("again")
    (artifact.folder / "words.txt").write_text("onetwo!")
    ask("damaged")
    (artifact.folder / "words.txt").unlink()
    ask("output missing")
    os.truncate(artifact.folder / "manifest.json", 40)
    ask("manifest truncated")
    shutil.rmtree(artifact.folder)
    ask("folder missing")
    for record in (Path(os.environ["PREFECT_HOME"]) / "storage").iterdir():
        record.write_text("{")
    ask("prefect's record unreadable")
    shutil.rmtree(Path(os.environ["PREFECT_HOME"]) / "storage")
    ask("prefect's record missing")
    ask("other", words="three")
    try:
        ask("full disk", words="four", fails=True)
    except EnvironmentFault as error:
        story.append(["full disk", str(error), error.exit_code, None])
    ask("room again", words="four")

tell()
print("STORY", json.dumps(story))
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, empty_prefect: Path) -> dict[str, list]:
    home = tmp_path_factory.mktemp("home") / "家's home"
    put_prefect(empty_prefect, home / "prefect")
    clean = {n: v for n, v in os.environ.items() if not n.startswith(("PREFECT_", "FOURSTAGE_"))}
    done = subprocess.run(
        [sys.executable, "-c", STORY],
        cwd=REPOSITORY,
        env=clean | {"FOURSTAGE_HOME": str(home), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("STORY ")]
    assert lines, done.stderr[-4000:]
    found = {what: rest for what, *rest in json.loads(lines[0].removeprefix("STORY "))}
    records = [path.name for path in Path(home / "prefect" / "storage").iterdir()]
    return found | {"records": records}


def test_a_finished_step_is_reused(story):
    assert story["new"][:2] == ["made", 1]
    assert story["again"][:2] == ["reused", 0]


@pytest.mark.parametrize(
    "harm", ["damaged", "output missing", "manifest truncated", "folder missing"]
)
def test_a_step_whose_entry_is_harmed_is_made_again(story, harm):
    assert story[harm] == ["made", 1, story["new"][2]]


@pytest.mark.parametrize("harm", ["prefect's record unreadable", "prefect's record missing"])
def test_without_prefects_record_a_whole_entry_is_still_reused(story, harm):
    assert story[harm] == ["reused", 0, story["new"][2]]


def test_other_settings_make_another_entry(story):
    assert story["other"][:2] == ["made", 1]
    assert story["other"][2] != story["new"][2]


def test_a_full_disk_is_told_with_what_to_do_and_leaves_nothing_behind(story):
    said, code, _ = story["full disk"]
    assert code == 1
    assert said.startswith("corpus notes: no space for corpus/")
    assert "(No space left on device after 0.0 MB)" in said
    assert "FOURSTAGE_HOME" in said
    assert story["room again"][:2] == ["made", 1]


def test_prefects_records_are_named_by_kind_and_key(story):
    assert any(name.startswith("corpus-") and len(name) == 71 for name in story["records"])
