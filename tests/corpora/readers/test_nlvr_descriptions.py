"""Captions from descriptions in NLVR's lines: what is read, refused, and kept together."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpora.conftest import Prepare
from tests.corpora.readers.test_nlvr import FIELDS, archive, at
from tests.corpora.test_regions import drawing, encoded

ITEM = {"type": "square", "color": "#0099ff", "size": 20, "x_loc": 40, "y_loc": 80}


def line(number: int, boxes: Any) -> dict[str, Any]:
    return {"identifier": f"{number}-0", "directory": "0", "structured_rep": boxes}


@pytest.fixture
def described(tmp_path: Path, dataset: Prepare):
    def prepare(rows: list[Any]):
        data = "\n".join(map(json.dumps, rows)).encode()
        (tmp_path / "dev.json.gz").write_bytes(gzip.compress(data))
        pictures = {at("dev", f"{n}-0"): encoded(drawing(n)) for n in range(len(rows))}
        archive(tmp_path / "images.tar.gz", pictures)
        return dataset(
            tmp_path / "dev.json.gz",
            format="nlvr_descriptions",
            fields=FIELDS,
            where={"label": "true"},
            pictures=str(tmp_path / "images.tar.gz"),
        )

    return prepare


def test_captions_of_one_picture_are_rows_on_one_side(described):
    many = [
        [{**ITEM, "y_loc": 80 - 21 * k, "color": colour} for k in range(n % 4 + 1)]
        for n, colour in enumerate(["#0099ff", "Black", "Yellow"] * 20)
    ]
    prepared = described([line(n, many[n : n + 3]) for n in range(57)])
    rows = prepared.table()
    assert {row["label"] for row in rows} == {"true"}
    sides: dict[str, set[str]] = {}
    for row in rows:
        sides.setdefault(row["picture"], set()).add(row["split"])
    assert len(rows) == 10 * len(sides) == 570
    assert all(len(side) == 1 for side in sides.values())
    # Pictures are on several sides, although the same sentences are true of many of them.
    assert {split for side in sides.values() for split in side} == {"train", "dev", "test"}
    assert any("blue" in row["text"] for row in rows)


@pytest.mark.parametrize(
    "boxes",
    [
        None,
        "three",
        [],
        [[ITEM], [ITEM]],
        [[], [], []],
        [[ITEM], [ITEM], ITEM],
        [[ITEM], [ITEM], ["square"]],
        *(
            [[ITEM], [ITEM], [ITEM | wrong]]
            for wrong in (
                {"type": "star"},
                {"color": "red"},
                {"color": 3},
                {"size": 25},
                {"size": True},
                {"x_loc": 81},
                {"y_loc": -1},
                {"y_loc": 1.5},
                {"x_loc": None},
            )
        ),
    ],
)
def test_a_description_of_another_form_is_set_aside_by_its_id(described, boxes):
    good = [line(n, [[ITEM | {"color": "Black"}], [ITEM], [ITEM]]) for n in range(2)]
    prepared = described([*good, line(2, boxes)])
    (rejected,) = prepared.rejected()
    assert rejected["id"] == "2-0"
    assert rejected["reason"] == "not three boxes of known items in structured_rep"


def test_a_line_without_a_name_is_set_aside_by_its_number(described):
    boxes = [[ITEM], [ITEM], [ITEM]]
    prepared = described([line(0, boxes), line(1, boxes) | {"identifier": 7}])
    (rejected,) = prepared.rejected()
    assert rejected["id"] == "dev.json.gz:2"
    assert rejected["reason"] == "not text in each of identifier, directory"
