"""What a version's evidence knows of its rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.preparation import prepare_dataset
from corpora.prepared import prepared_rows
from corpora.snapshot import take_snapshot
from data_contracts.sources import parse_source
from tasks.registry.evidence import row_digests
from tasks.store.artifacts import Artifact, Findings, store


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
