"""What is drawn together in a bootstrap: rows of a text, or of a group that the source names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.preparation import prepare_dataset
from corpora.snapshot import take_snapshot
from data_contracts.sources import parse_source
from tasks.steps.prediction_columns import LEAST_GROUPS, texts_of
from tasks.store.artifacts import Input


def prepared(tmp_path: Path, groups: int, **fields: str) -> tuple[Input, dict[str, str]]:
    """A dataset with three test rows in each group, and the group of each test row."""
    source_fields = {"id": "id", "text": "text", "label": "label", **fields}
    files, named = {}, {}
    for split in ("train", "dev", "test"):
        rows = [
            {
                "id": f"{split}{n}",
                "text": f"sentence number {n} of {split}",
                "label": "ab"[n % 2],
                "abstract": f"{split} abstract {n // 3}",
            }
            for n in range(3 * groups)
        ]
        files[split] = str(tmp_path / f"{split}.jsonl")
        Path(files[split]).write_text("\n".join(map(json.dumps, rows)), "utf-8")
        named = {row["id"]: row["abstract"] for row in rows}
    raw = {"name": "mine", "language": "en", "licence": "none", "files": files}
    source = parse_source(raw | {"fields": source_fields})
    folder = tmp_path / "prepared"
    folder.mkdir()
    prepare_dataset(source, take_snapshot(source), folder)
    outputs = {path.name: "" for path in folder.iterdir()}
    return Input("dataset", "", folder, outputs, {}), named


@pytest.mark.parametrize(("groups", "numbers"), [(LEAST_GROUPS, LEAST_GROUPS), (4, 12)])
def test_rows_of_a_group_have_one_number_unless_groups_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: int, numbers: int
):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    dataset, named = prepared(tmp_path, groups, group="abstract")
    found = dict(zip(named, texts_of(dataset, list(named), []), strict=True))
    assert len(set(found.values())) == numbers
    if numbers == groups:
        assert len({(named[row], number) for row, number in found.items()}) == groups


def test_where_no_groups_are_named_each_text_has_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    dataset, named = prepared(tmp_path, LEAST_GROUPS)
    assert texts_of(dataset, list(named), []) == list(range(3 * LEAST_GROUPS))
