"""What new data are held against: the champion's data, else those of the last run."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pandas
import pytest

from tasks.planning.drift_references import DriftReferences, Reference
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact, Findings, Store
from tasks.store.history import remember
from tasks.store.registry_memory import Version
from tests.flows.own_project import FIELDS, Project, recipe

RECIPE = SimpleNamespace(name="mine", model="mine")
NAME = "contract notes"


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


def made(
    store: Store, lengths: list[int], quarantined: list[str], source: str = "notes"
) -> dict[str, Artifact]:
    """A corpus, its contract and a package that comes from them, by step name."""

    def profile(folder: Path) -> Findings:
        ids = [f"d{n}" for n in range(len(lengths))]
        table = pandas.DataFrame({"id": ids, "num_chars": lengths})
        table.to_parquet(folder / "profile.parquet")
        return Findings()

    def report(folder: Path) -> Findings:
        rows = {row: ["text_present"] for row in quarantined}
        (folder / "quarantined.json").write_text(json.dumps(rows))
        return Findings()

    what = {"lengths": lengths, "quarantined": quarantined}
    works = {
        ("corpus", f"corpus {source}"): profile,
        ("contract", f"contract {source}"): report,
        ("package", "package"): lambda folder: Findings(),
    }
    found: list[Artifact] = []
    for (kind, name), work in works.items():
        inputs = {"data": found[-1]} if found else {}
        found.append(store.make(kind, name, {"kind": kind, **what}, work, inputs)[0])
    return {one.name: one for one in found}


def champion(home: Path, package: Artifact) -> None:
    versions = [
        Version("mine", 1, package.key, None, None, ("champion",), {}),
        Version("mine", 2, "0" * 64, None, None, ("challenger",), {}),
    ]
    (home / "registry").mkdir()
    text = json.dumps([asdict(version) for version in versions])
    (home / "registry" / "mine.json").write_text(text)


def lengths(reference: Reference | None) -> list[int]:
    assert reference is not None
    return reference.kept()["num_chars"].tolist()


def test_before_any_run_there_is_none(store: Store):
    assert DriftReferences(RECIPE).of(NAME) is None


def test_the_last_run_is_it_without_what_was_quarantined(store: Store):
    first = made(store, [1, 2, 3], ["d1"])
    remember("mine", first)
    reference = DriftReferences(RECIPE).of(NAME)
    assert lengths(reference) == [1, 3]
    remember("mine", made(store, [1, 2, 3], []))
    other = DriftReferences(RECIPE).of(NAME)
    assert reference is not None
    assert other is not None
    assert other.digest != reference.digest


def test_the_champion_comes_before_a_run_that_was_not_promoted(store: Store, home: Path):
    champion(home, made(store, [1, 2], [])["package"])
    remember("mine", made(store, [7, 8, 9], []))
    assert lengths(DriftReferences(RECIPE).of(NAME)) == [1, 2]
    without_model = SimpleNamespace(name="mine", model=None)
    assert lengths(DriftReferences(without_model).of(NAME)) == [7, 8, 9]


def test_of_a_refreshed_champion_it_is_the_last_state(store: Store, home: Path):
    """It went on from a stage of an older state, and its new text is what a newer one had not."""
    first = made(store, [1, 2], ["d0"])
    time.sleep(1.1)  # manifests tell seconds
    second = made(store, [1, 2, 3], ["d1"])
    inputs = {"tokens": second[NAME], "seen": first["corpus notes"], "stage before": first[NAME]}
    package = store.make("package", "package", {"refreshed": 1}, lambda _: Findings(), inputs)[0]
    champion(home, package)
    assert lengths(DriftReferences(RECIPE).of(NAME)) == [1, 3]


def test_what_the_store_has_no_longer_is_none(store: Store):
    remember("mine", first := made(store, [1, 2], []))
    first["corpus notes"].path("profile.parquet").unlink()
    assert DriftReferences(RECIPE).of(NAME) is None


def test_the_reference_is_in_the_key_of_a_contract_that_reads_it(store: Store, tmp_path: Path):
    project = Project(tmp_path / "own")
    both = ["corpus", "drift_corpus"]
    project.source("notes", files=["data/notes.jsonl"], fields=FIELDS, contract=both)
    path = str(project.recipe(recipe("mine")))
    assert "reference" not in plan_recipe(path).steps["contract notes"].settings
    remember("mine", made(store, [1, 2, 3], []) | made(store, [4], [], "letters"))
    steps = plan_recipe(path).steps
    reference = steps["contract notes"].given["reference"]
    assert lengths(reference) == [1, 2, 3]
    assert steps["contract notes"].settings["reference"] == reference.digest
    assert "reference" not in steps["contract letters"].settings  # its suite reads none


def test_a_damaged_record_of_the_last_run_is_told_and_stops_no_plan(
    home: Path, store: Store, capsys: pytest.CaptureFixture[str]
):
    first = made(store, [1, 2, 3], ["d1"])
    remember("mine", first)
    (home / "recipes" / "mine.json").write_text('{"half', encoding="utf-8")
    references = DriftReferences(RECIPE)
    assert references.of(NAME) is references.of(NAME) is None
    said = capsys.readouterr().err
    assert said.count("mine.json: can't read the artifacts of the last run of mine") == 1
    assert "Run the recipe again to rewrite the file" in said
    champion(home, first["package"])
    assert lengths(DriftReferences(RECIPE).of(NAME)) == [1, 3]
    assert capsys.readouterr().err == "", "it is not read"
