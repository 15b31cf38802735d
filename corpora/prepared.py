"""Reads prepared documents and rows, a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow

DOCUMENTS = "documents.arrow"
ROWS = "rows.arrow"
GROUPS = "groups.json"  # where the source names groups: what the rows of one group share, by id


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A prepared document; `split` is ``train`` or ``heldout``."""

    id: str
    text: str
    split: str


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A row with its answer, in `label`; `split` is ``train``, ``dev`` or ``test``."""

    id: str
    text: str
    text_pair: str | None
    label: str
    split: str
    choices: tuple[str, ...] | None = None
    picture: str | None = None  # its name in the file of regions

    @property
    def texts(self) -> tuple[str, ...]:
        """Its texts, in order."""
        pair = () if self.text_pair is None else (self.text_pair,)
        return (self.text, *pair, *(self.choices or ()))

    @property
    def whole(self) -> str:
        """All its texts, joined: both of a pair, the choices."""
        return " ".join(filter(None, self.texts))


def prepared_documents(folder: Path) -> Iterator[PreparedDocument]:
    """The documents of a prepared corpus, in their order."""
    for batch in _record_batches(folder / DOCUMENTS):
        columns = (batch.column(name).to_pylist() for name in ("id", "text", "split"))
        yield from map(PreparedDocument, *columns)


def prepared_rows(folder: Path) -> Iterator[PreparedRow]:
    """The rows of a prepared dataset, in their order."""
    names = ("id", "text", "text_pair", "label", "split")
    for batch in _record_batches(folder / ROWS):
        choices = (each and tuple(each) for each in batch.column("choices").to_pylist())
        columns = (batch.column(name).to_pylist() for name in names)
        yield from map(PreparedRow, *columns, choices, batch.column("picture").to_pylist())


def prepared_groups(folder: Path) -> dict[str, str]:
    """The group of each row of a prepared dataset, by id; empty if its source names none."""
    path = folder / GROUPS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _record_batches(path: Path) -> Iterator[pyarrow.RecordBatch]:
    # Not mapped: a memory map that is read from front to back once would fill memory.
    with pyarrow.OSFile(str(path)) as stream:
        reader = pyarrow.ipc.open_file(stream)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
