"""Baselines of rows with pictures: one of them sees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from corpora.preparation import prepare_dataset
from corpora.snapshot import take_snapshot
from data_contracts.sources import parse_source
from tasks.steps.fit_baseline import ANSWERS, SEEING, fit_baseline
from tasks.steps.prediction_columns import rivals_of
from tasks.store.artifacts import Artifact, Findings, Input, store
from tasks.store.kept import QUARANTINED
from tasks.store.steps import Bound, Step
from tests.corpora.readers.test_nlvr import archive
from tests.corpora.test_regions import encoded

COLOURS = {"blue": (0, 150, 255), "yellow": (255, 255, 0)}


def picture(colour: str, at: int) -> bytes:
    """One square of a colour on white."""
    pixels = np.full((24, 48, 3), 255)
    pixels[4:16, at : at + 12] = COLOURS[colour]
    return encoded(pixels)


def rows_of(split: str, count: int) -> tuple[list[dict[str, str]], dict[str, bytes]]:
    """Is the square of the colour that is named? Each word and picture is as often true."""
    rows, pictures = [], {}
    for n in range(count):
        named, shown = (list(COLOURS)[n // 2**bit % 2] for bit in (0, 1))
        name = f"{split}/{n}.png"
        pictures[name] = picture(shown, n % 30 + 1)
        label = "true" if named == shown else "false"
        said = f"square number {n} of {split} is {named}"
        rows.append({"id": f"{split}{n}", "text": said, "label": label, "picture": name})
    return rows, pictures


def test_rows_with_pictures_have_a_baseline_that_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    files, every = {}, {}
    for split, count in {"train": 80, "dev": 20, "test": 40}.items():
        rows, pictures = rows_of(split, count)
        every |= pictures
        files[split] = str(tmp_path / f"{split}.jsonl")
        Path(files[split]).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    archive(tmp_path / "pictures.tar.gz", every)
    fields = {"id": "id", "text": "text", "label": "label", "picture": "picture"}
    raw = {"name": "mine", "language": "en", "licence": "none", "files": files, "fields": fields}
    source = parse_source(raw | {"pictures": str(tmp_path / "pictures.tar.gz")})

    def dataset(folder: Path) -> Findings:
        prepare_dataset(source, take_snapshot(source), folder, overlap="report")
        return Findings()

    def contract(folder: Path) -> Findings:
        (folder / QUARANTINED).write_text("{}", "utf-8")
        return Findings()

    made = {"data": dataset, "contract": contract}
    inputs = {
        role: store().make(role, role, {"of": role}, make, {})[0] for role, make in made.items()
    }
    step = Step("baseline mine", "baseline", {"metric": "accuracy", "markings": []})
    fit_baseline.fn(Bound(step, inputs))
    found = store().find("baseline", Bound(step, inputs).key)
    assert isinstance(found, Artifact)
    assert found.facts["seeing"]["score"] == 1.0
    asked = [f"test{n}" for n in range(40)]
    of = rivals_of(Input("baseline", "", found.folder, found.outputs, found.facts), asked)
    right = [row["label"] for row in rows_of("test", 40)[0]]
    score = {name: float(np.mean(said == np.array(right))) for name, said in of.items()}
    assert score[SEEING] == 1.0
    assert score["cheap_baseline"] < 0.8 > score["majority"]
    assert set(pandas.read_parquet(found.path(ANSWERS))["id"]) > set(asked)
