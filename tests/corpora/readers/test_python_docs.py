"""Documentation strings as text: by syntax, never by import, and without the libraries' names."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from corpora.preparation import prepare_corpus, prepare_dataset
from corpora.readers.python_docs import without_names
from corpora.snapshot import take_snapshot
from data_contracts.sources import load_source
from fourstage.errors import UnknownNameError
from tests.corpora.conftest import Prepared, source_of

NAMES = re.compile(
    r"(?i)numpy|\bnp\b|scipy|pandas|\bpd\b|sklearn|scikit|matplotlib|pyplot|\bplt\b|\bmpl\b|keras"
)


def test_documentation_is_read_without_importing(tmp_path: Path):
    source = source_of(packages=["click"], document="object")
    snapshot = take_snapshot(source)
    before = set(sys.modules)
    counts = prepare_corpus(source, snapshot, tmp_path)
    assert counts.kept > 100
    assert "click" not in set(sys.modules) - before
    table = Prepared(counts, tmp_path, "").table()
    assert "click:click.core.Command" in {row["id"] for row in table}


def test_modules_and_objects_hold_the_same_documentation(tmp_path: Path):
    counts = {}
    for document in ("module", "object"):
        source = source_of(packages=["flask"], document=document)
        folder = tmp_path / document
        folder.mkdir()
        counts[document] = prepare_corpus(source, take_snapshot(source), folder)
    assert 5 < counts["module"].read < counts["object"].read


def test_an_absent_package_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'numpy'"):
        take_snapshot(source_of(packages=["numpi"]))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Return a NumPy array, as np.array does.", "Return a array, as array does."),
        ("scikit-learn and sklearn.svm", "and svm"),
        ("the numpydoc npz file", "the doc npz file"),
        ("inputs snippet", "inputs snippet"),
    ],
)
def test_names_of_libraries_are_taken_out(text: str, left: str):
    assert without_names(text, ("numpy", "scikit-learn")) == left


def test_the_labelled_passages_are_balanced_distinct_and_nameless(tmp_path: Path):
    source = load_source("python_libraries", [])
    folder = tmp_path / "passages"
    folder.mkdir()
    prepared = Prepared(prepare_dataset(source, take_snapshot(source), folder), folder, "")
    table = prepared.table()
    assert prepared.labels() == ["keras", "matplotlib", "numpy", "pandas", "scikit-learn", "scipy"]
    limit = source.rows_per_label
    assert limit is not None
    for label in prepared.labels():
        assert 0.8 * limit <= sum(row["label"] == label for row in table) <= limit
    splits = [row["split"] for row in table]
    assert min(splits.count("dev"), splits.count("test")) > 100
    assert not [row["id"] for row in table if NAMES.search(row["text"])]
    # The same on every run, to the byte.
    few = source.model_copy(update={"packages": ("keras", "numpy")})
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        prepare_dataset(few, take_snapshot(few), folder)
    for name in ("rows.arrow", "labels.json", "profile.parquet"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()

    # And no document of the domain corpus holds a dev or test passage.
    evaluation = [row["text"] for row in table if row["split"] != "train"]
    corpus = source_of(packages=["scikit-learn"], document="object")
    folder = tmp_path / "corpus"
    folder.mkdir()
    counts = prepare_corpus(corpus, take_snapshot(corpus), folder, evaluation_texts=evaluation)
    assert counts.removed["holds an evaluation text"] > 20
    held = [
        row["text"] for row in table if row["split"] == "test" and row["label"] == "scikit-learn"
    ]
    kept = " ".join(
        " ".join(without_names(row["text"], source.packages).split())
        for row in Prepared(counts, folder, "").table()
    )
    assert not [text for text in held if text in kept]


def test_a_session_is_what_is_typed_and_answered_in_turn(tmp_path: Path):
    source = source_of(packages=["numpy"], document="session", sentences="lines")
    counts = prepare_corpus(source, take_snapshot(source), tmp_path)
    table = {row["id"]: row["text"] for row in Prepared(counts, tmp_path, "").table()}
    assert len(table) > 200
    lines = next(text for name, text in table.items() if name.endswith(".outer")).split("\n")
    assert len(lines) % 2 == 0
    assert lines[0].startswith("import numpy as np; rl = np.outer(")
    assert lines[1].startswith("array([[-2., -1., 0., 1., 2.],")
