"""Tables joined to the records, and records left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data_contracts.sources import parse_source
from fourstage.errors import ContractViolation, RecipeError
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import rows, write


@pytest.fixture
def files(tmp_path: Path) -> Path:
    records = rows(60)
    write(tmp_path / "texts.jsonl", [{"id": r["id"], "text": r["text"]} for r in records])
    lines = [f"{r['id']},{r['label']},{'yes' if n % 3 else 'no'}" for n, r in enumerate(records)]
    (tmp_path / "labels.csv").write_text("id,label,agreed\n" + "\n".join(lines) + "\n")
    for split, some in (("train", records[:40]), ("test", records[40:50])):
        (tmp_path / f"{split}.txt").write_text("\n".join(r["id"] for r in some))
    return tmp_path


def joined(files: Path, **settings: Any) -> dict[str, Any]:
    labels = {"by": "id", "files": str(files / "labels.csv")}
    return {"files": str(files / "texts.jsonl"), "join": labels} | settings


def test_labels_come_from_a_table_of_their_own(files: Path, dataset: Prepare):
    prepared = dataset(**joined(files, fields={"text": "{text} ({agreed})", "label": "label"}))
    assert prepared.counts.kept == 60
    expected = {r["id"]: r["label"] for r in rows(60)}
    assert {row["id"]: row["label"] for row in prepared.table()} == expected
    assert all(row["text"].endswith(("(yes)", "(no)")) for row in prepared.table())


def test_blanks_around_a_value_to_join_by_make_no_difference(files: Path, dataset: Prepare):
    records = [{"id": f" {r['id']} ", "text": r["text"]} for r in rows(60)]
    write(files / "texts.jsonl", records)
    labels = (files / "labels.csv").read_text().replace("r2-7,", " r2-7 ,")
    (files / "labels.csv").write_text(labels)
    assert dataset(**joined(files)).counts.kept == 60


def test_a_changed_table_is_another_snapshot(files: Path, dataset: Prepare):
    before = dataset(**joined(files)).snapshot_digest
    labels = (files / "labels.csv").read_text().replace(",pos,", ",positive,")
    (files / "labels.csv").write_text(labels)
    assert dataset(**joined(files)).snapshot_digest != before


def test_lists_of_ids_decide_the_splits(files: Path, dataset: Prepare):
    labels = {"by": "id", "files": str(files / "labels.csv")}
    lists = {split: str(files / f"{split}.txt") for split in ("train", "test")}
    prepared = dataset(**joined(files, join=[labels, {"by": "id", "files": lists}]))
    assert prepared.counts.quarantined == {"no record to join by 'id'": 10}
    assert {r["id"] for r in prepared.table() if r["split"] == "test"} == {
        r["id"] for r in rows(60)[40:50]
    }
    assert prepared.counts.details["carved_from_train"] == ["dev"]


def test_records_that_are_not_wanted_are_left_out_and_counted(files: Path, dataset: Prepare):
    prepared = dataset(**joined(files, where={"agreed": ["Yes", "maybe"]}))
    assert prepared.counts.removed == {"left out by 'where' (agreed)": 20}
    assert prepared.counts.kept == 40


def test_a_value_twice_and_a_missing_column_are_refused(files: Path, dataset: Prepare):
    with pytest.raises(ContractViolation, match=r"labels.csv: line 1: expected a column 'key'"):
        dataset(**joined(files, join={"by": "key", "files": str(files / "labels.csv")}))
    with open(files / "labels.csv", "a") as stream:
        stream.write("r2-0,pos,yes\n")
    with pytest.raises(ContractViolation, match=r"line 62: duplicate value of 'id'"):
        dataset(**joined(files))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"join": {"files": "a.csv"}}, "join[0].by: expected a value, got nothing"),
        ({"join": {"by": "id", "files": {"dev": "a"}}}, "at least the split 'train'"),
        ({"join": {"by": "id", "files": {"trian": "a"}}}, "join.files.trian: expected a list"),
        ({"join": {"by": "id", "file": "a"}}, "'file' is not a key here; did you mean 'files'?"),
        (
            {"join": {"by": "id", "files": {"train": "a"}}, "files": {"train": "b"}},
            "the splits are listed twice",
        ),
    ],
)
def test_a_join_that_cannot_be_is_refused(settings: dict[str, Any], said: str):
    raw = {"name": "mine", "language": "en", "licence": "none", "files": "x"} | settings
    with pytest.raises(RecipeError) as caught:
        parse_source(raw | {"fields": {"text": "text", "label": "label"}})
    assert said in str(caught.value)
