"""A home of its own for every test, and the short way from files to what is prepared of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from corpora.evaluation_rows import EvaluationRows
from corpora.preparation import prepare_corpus, prepare_dataset
from corpora.rejections import Counts
from corpora.snapshot import take_snapshot
from data_contracts.sources import Source, parse_source


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("FOURSTAGE_HOME", str(folder))
    monkeypatch.delenv("FOURSTAGE_DATA", raising=False)
    return folder


@dataclass(frozen=True)
class Prepared:
    counts: Counts
    folder: Path
    snapshot_digest: str

    def table(self) -> list[dict[str, Any]]:
        path = self.folder / "documents.arrow"
        path = path if path.exists() else self.folder / "rows.arrow"
        with pyarrow.memory_map(str(path)) as mapped:
            return pyarrow.ipc.open_file(mapped).read_all().to_pylist()

    def profile(self) -> list[dict[str, Any]]:
        return pyarrow.parquet.read_table(self.folder / "profile.parquet").to_pylist()

    def rejected(self) -> list[dict[str, Any]]:
        lines = (self.folder / "rejected.jsonl").read_text("utf-8").split("\n")
        return [json.loads(line) for line in lines if line]

    def labels(self) -> list[str]:
        return json.loads((self.folder / "labels.json").read_text("utf-8"))


def source_of(**settings: Any) -> Source:
    return parse_source({"name": "mine", "language": "en", "licence": "CC0-1.0"} | settings)


Prepare = Callable[..., Prepared]


def _as_text(path: Path | str | list[Path]) -> Any:
    return [str(each) for each in path] if isinstance(path, list) else str(path)


@pytest.fixture
def corpus(tmp_path: Path) -> Prepare:
    """`corpus(files, **source settings)` prepares a corpus as the faults' `own corpus` does."""
    times = iter(range(1000))

    def prepare(
        files: Path | str | list[Path], evaluation_texts: Iterable[str] = (), **settings: Any
    ) -> Prepared:
        settings = {"fields": {"text": "text"}} | settings
        source = source_of(files=_as_text(files), **settings)
        folder = tmp_path / f"prepared{next(times)}"
        folder.mkdir()
        snapshot = take_snapshot(source)
        counts = prepare_corpus(source, snapshot, folder, evaluation_texts=evaluation_texts)
        counts.check()
        return Prepared(counts, folder, snapshot.digest)

    return prepare


@pytest.fixture
def dataset(tmp_path: Path) -> Prepare:
    """`dataset(train, test, **source settings)` prepares labelled rows."""
    times = iter(range(1000))

    def prepare(
        train: Path | None = None,
        test: Path | None = None,
        dev: Path | None = None,
        overlap: Any = "drop_from_train",
        elsewhere: EvaluationRows | None = None,
        training_rows: tuple[int, int] | None = None,
        **settings: Any,
    ) -> Prepared:
        listed = {"train": train, "dev": dev, "test": test}
        files: Mapping[str, str] = {k: str(path) for k, path in listed.items() if path is not None}
        settings = {"fields": {"text": "text", "label": "label"}, "files": files} | settings
        source = source_of(**settings)
        folder = tmp_path / f"dataset{next(times)}"
        folder.mkdir()
        snapshot = take_snapshot(source)
        counts = prepare_dataset(
            source,
            snapshot,
            folder,
            overlap=overlap,
            elsewhere=elsewhere,
            training_rows=training_rows,
        )
        counts.check()
        return Prepared(counts, folder, snapshot.digest)

    return prepare
