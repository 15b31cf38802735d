"""What a version's evidence knows of its rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.preparation import prepare_dataset
from corpora.prepared import prepared_rows
from corpora.snapshot import take_snapshot
from data_contracts.sources import parse_source
from tasks.registry.decision import hold
from tasks.registry.evidence import HOLDER, keep_evidence, row_digests
from tasks.registry.promote_model import find_version_of, promote
from tasks.registry.versions import aliases
from tasks.store.artifacts import Artifact, Findings, store
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import start_lifecycle
from tests.tasks.lifecycle import make_light_package
from tests.tasks.registry.test_registry import NAME, evidence, make_version

RULES = {"require": {}, "contracts": {}, "overlap": ["refuse", 0]}


def dataset(tmp_path: Path, texts: list[str]) -> tuple[Artifact, list[str]]:
    """A dataset without ids and with listed splits, and the ids of its dev rows."""
    files = {}
    for split in ("train", "dev", "test"):
        of = texts if split == "dev" else [f"text {n} of {split}" for n in range(40)]
        rows = [{"text": text, "label": "ab"[n % 2]} for n, text in enumerate(of)]
        files[split] = str(tmp_path / f"{split}.jsonl")
        Path(files[split]).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    raw = {"name": "mine", "language": "en", "licence": "none", "files": files}
    source = parse_source(raw | {"fields": {"text": "text", "label": "label"}})

    def make(folder: Path) -> Findings:
        prepare_dataset(source, take_snapshot(source), folder)
        return Findings()

    made, _ = store().make("dataset", "dataset mine", {"of": texts}, make, {})
    return made, [row.id for row in prepared_rows(made.folder) if row.split == "dev"]


def test_rows_named_by_their_lines_are_told_apart_by_their_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    first, ids = dataset(tmp_path, [f"dev text {n}" for n in range(30)])
    second, others = dataset(tmp_path, [*(f"dev text {n}" for n in range(29)), "Dev text 30!"])
    assert ids == others
    before, after = row_digests(first, ids), row_digests(second, ids)
    assert before[:29] == after[:29]
    assert before[29] != after[29]
    assert len(set(before)) == 30


def delete_for_good(tracking: Tracking, run: str | None) -> None:
    """As MLflow's client and then `mlflow gc` delete a run."""
    assert run is not None
    tracking.client.delete_run(run)
    tracking.client._tracking_client.store._hard_delete_run(run)


def test_a_champion_whose_run_was_deleted_refuses_and_does_not_block(
    tracking: Tracking, home: Path, tmp_path: Path
):
    package = make_light_package(tmp_path / "package")
    for seed in (1, 2):
        version = make_version(tracking, home, package, seed)
        keep_evidence(tracking, version, evidence(home, version), RULES)
        if seed == 1:
            promote(tracking, hold(tracking, NAME, 1), smoke_test=False)
    delete_for_good(tracking, find_version_of(tracking, NAME, 1).run_id)
    gate = hold(tracking, NAME, 2)
    (check,) = (check for check in gate.failed if check.name != "lineage")
    assert check.name == "champion readable"
    assert f"{NAME} version 1: its evaluation evaluation/version-1.json can't be" in check.observed
    assert "--version 2 --force` goes on without" in check.says

    # Its recipe runs again: another run has its evidence from now on.
    first, run = find_version_of(tracking, NAME, 1), start_lifecycle(tracking, "demo")
    keep_evidence(tracking, first, evidence(home, first), RULES, run_id=run)
    assert find_version_of(tracking, NAME, 1).tags[HOLDER] == run
    assert "champion readable" not in [check.name for check in hold(tracking, NAME, 2).failed]

    delete_for_good(tracking, run)
    delete_for_good(tracking, find_version_of(tracking, NAME, 2).run_id)
    promote(tracking, gate, force=True, smoke_test=False)
    assert aliases(tracking, NAME)["champion"] == 2
