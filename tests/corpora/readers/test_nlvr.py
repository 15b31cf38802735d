"""Sentences with pictures: what is kept, what is set aside, what keeps rows apart."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.pictures import PreparedRegions
from corpora.regions import regions_of
from fourstage.errors import ContractViolation, RecipeError
from tests.corpora.conftest import Prepare, Prepared, source_of
from tests.corpora.test_regions import bomb, drawing, encoded

FIELDS = {"id": "id", "text": "sentence", "label": "label", "picture": "picture"}


def example(number: str, sentence: str, label: Any = "true") -> dict[str, Any]:
    return {"sentence": sentence, "label": label, "identifier": number, "directory": "0"}


def archive(path: Path, pictures: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as packed:
        for name, data in pictures.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))


@pytest.fixture
def nlvr(tmp_path: Path, dataset: Prepare):
    """Prepares training and test examples and their pictures, by split and number."""

    def prepare(train: list, test: list, pictures: dict[str, bytes], most: int = 36) -> Prepared:
        for split, rows in {"dev": train, "test": test}.items():
            lines = "\n".join(map(json.dumps, rows)).encode()
            (tmp_path / f"{split}.json.gz").write_bytes(gzip.compress(lines))
        archive(tmp_path / "images.tar.gz", pictures)
        named = {"files": str(tmp_path / "images.tar.gz"), "most_regions": most}
        settings = {"format": "nlvr", "fields": FIELDS, "pictures": named}
        train_file, test_file = (tmp_path / f"{split}.json.gz" for split in ("dev", "test"))
        return dataset(train_file, test_file, **settings)

    return prepare


def at(split: str, number: str) -> str:
    return f"{split}/images/0/{split}-{number}-0.png"


def test_one_sentence_about_two_pictures_is_two_rows_and_on_one_side(nlvr):
    said = "There is a black square."
    train = [example("1-0", said), example("1-1", said, "false")]
    train += [example(f"{n}-0", f"Box number {n} has {n} yellow circles.", "false") for n in (2, 3)]
    pictures = {at("dev", row["identifier"]): encoded(drawing(n)) for n, row in enumerate(train)}
    pictures[at("test", "1-0")] = encoded(drawing(9))
    prepared = nlvr(train, [example("1-0", said)], pictures)
    assert prepared.counts.kept == 5  # the test row's picture is another one
    rows = {row["id"]: row for row in prepared.table()}
    assert rows["1-0"]["split"] == rows["1-1"]["split"]
    assert rows["test:1-0"]["split"] == "test"
    assert prepared.counts.details["contradictory"]["rows"] == 0
    boxes, features = PreparedRegions(prepared.folder).of(rows["1-1"]["picture"])
    wanted = regions_of(pictures[at("dev", "1-1")])
    assert np.array_equal(boxes, wanted.boxes)
    assert np.array_equal(features, wanted.features)


def test_rows_without_regions_are_set_aside_by_their_ids(nlvr):
    numbers = ("lost", "short", "bomb", "empty", "whole", "other")
    train = [example(number, f"About the {number} one.") for number in numbers]
    train += [example("7", "A label that is none.", True), "no object"]
    blank = np.zeros((2, 2, 3))
    pictures = {
        at("dev", "short"): encoded(drawing(1))[:90],
        at("dev", "bomb"): bomb(50_000, 50_000),
        at("dev", "empty"): encoded(blank),
        at("dev", "whole"): encoded(drawing(2)),
        at("dev", "other"): encoded(drawing(3)),
        at("test", "1"): encoded(drawing(4)),
        "dev/readme.txt": b"about the pictures",
    }
    prepared = nlvr(train, [example("1", "A test.")], pictures)
    reasons = {row["id"]: row["reason"] for row in prepared.rejected()}
    assert reasons["lost"] == "a picture that is missing"
    assert reasons["short"] == "not a whole PNG or JPEG picture"
    assert reasons["bomb"] == "a picture of too many pixels"
    assert reasons["empty"] == "a picture without regions"
    assert prepared.counts.kept == 3
    assert sum(prepared.counts.quarantined.values()) == 6
    told = prepared.counts.details["pictures"]
    assert told["read"] == 6
    assert sum(told["without_regions"].values()) == 3


def test_regions_beyond_the_most_are_counted(nlvr):
    row = [example("1", "A sentence.")]
    pictures = {at("dev", "1"): encoded(drawing(1)), at("test", "1"): encoded(drawing(2))}
    every = nlvr(row, row, pictures)
    few = nlvr(row, row, pictures, most=2)
    assert every.counts.details["pictures"].get("with_more_regions") == 0
    assert few.counts.details["pictures"]["with_more_regions"] == 2
    assert few.counts.details["pictures"]["regions"] == 4


def test_another_picture_is_another_snapshot(nlvr):
    row = [example("1", "A sentence.")]
    digests = set()
    for seed in (1, 2):
        pictures = {at("dev", "1"): encoded(drawing(seed)), at("test", "1"): encoded(drawing(3))}
        digests.add(nlvr(row, row, pictures).snapshot_digest)
    assert len(digests) == 2


def test_a_hostile_archive_is_refused(nlvr):
    row = [example("1", "A sentence.")]
    with pytest.raises(ContractViolation, match="leads out of the archive"):
        nlvr(row, row, {"../../x.png": encoded(drawing(1))})


def test_a_source_names_pictures_and_their_column_or_neither():
    fields = {"text": "text", "label": "label"}
    with pytest.raises(RecipeError, match="got only one of them"):
        source_of(files="x.jsonl", fields=fields, pictures="y")
    with pytest.raises(RecipeError, match="got only one of them"):
        source_of(files="x.jsonl", fields={**fields, "picture": "image"})
    with pytest.raises(RecipeError, match=r"only with labelled rows and .* got 'text'"):
        source_of(files="x.jsonl", fields={**fields, "picture": "p"}, pictures="y", answers="text")
