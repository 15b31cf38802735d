"""Files of layers' vectors: read back bit by bit, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from pyarrow import parquet

from fourstage.errors import RecipeError
from models.interchange.layer_files import ReadText, check_new, layer_file

RNG = np.random.default_rng(0)
TEXTS = [
    ReadText("a", ["to", "##s", "苹"], RNG.normal(size=(2, 3, 4)).astype(np.float32)),
    ReadText("b", [], np.zeros((2, 0, 4), np.float32)),
    ReadText("c", ["to"], RNG.normal(size=(2, 1, 4)).astype(np.float32)),
]


def test_each_text_and_layer_is_a_row_with_the_numbers_as_they_are(tmp_path: Path):
    file = tmp_path / "layers.parquet"
    with layer_file(file, ["0", "1"], 4) as writer:
        writer.write(TEXTS[:2])
        assert not file.exists()
        writer.write(TEXTS[2:])
    rows = parquet.read_table(file).to_pylist()
    assert [(row["id"], row["layer"]) for row in rows] == [(i, n) for i in "abc" for n in "01"]
    for row in rows:
        text = next(text for text in TEXTS if text.id == row["id"])
        assert row["tokens"] == text.tokens
        found = np.array(row["vectors"], np.float32).reshape(-1, 4)
        np.testing.assert_array_equal(found, text.vectors[int(row["layer"])])
    assert [path.name for path in tmp_path.iterdir()] == ["layers.parquet"]


def test_hdf5_has_a_data_set_for_each_text(tmp_path: Path):
    file = tmp_path / "layers.h5"
    with layer_file(file, ["0", "1"], 4) as writer:
        writer.write(TEXTS[:2])
        writer.write(TEXTS[2:])
    with h5py.File(file) as found:
        assert found.attrs["layers"].tolist() == ["0", "1"]
        for number, text in enumerate(TEXTS):
            kept: Any = found[str(number)]
            np.testing.assert_array_equal(kept, text.vectors)
            assert kept.attrs["id"] == text.id
            tokens: Any = found[f"tokens/{number}"]
            assert tokens.asstr()[:].tolist() == text.tokens


def test_what_is_interrupted_leaves_the_old_file_and_no_other(tmp_path: Path):
    file = tmp_path / "layers.parquet"
    file.write_bytes(b"old")

    def interrupted() -> None:
        with layer_file(file, ["0", "1"], 4) as writer:
            writer.write(TEXTS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {file.name: b"old"}


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path):
    old = tmp_path / "old.parquet"
    old.write_bytes(b"old")
    check_new(old, replace=True)
    for file, told in (
        (old, "is there already"),
        (tmp_path / "new.csv", r"ends with \.parquet, \.h5"),
        (tmp_path / "none" / "new.parquet", "there is no folder"),
    ):
        with pytest.raises(RecipeError, match=told):
            check_new(file, replace=False)
