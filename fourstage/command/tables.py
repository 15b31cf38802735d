"""Files of rows that `predict` reads and writes, in batches: csv, tsv, jsonl and parquet."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

from fourstage.errors import ContractViolation, RecipeError

BATCH = 256  # rows read, predicted and written at a time
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
SUFFIXES = (*DELIMITERS, *LINES, ".parquet")
LONGEST_CELL = 2**30  # characters; the default, 131,072, is shorter than some documents

Row = dict[str, Any]


class Writer(Protocol):
    """Takes rows with the same columns."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows."""
        ...


def read_rows(file: Path) -> Iterator[list[Row]]:
    """A file's rows, batch by batch, by column.

    Raises:
        RecipeError: If its suffix names no format.
        ContractViolation: If it can't be read, naming the line.
    """
    suffix = _suffix(file, "--input")
    try:
        if suffix == ".parquet":
            from pyarrow.parquet import ParquetFile

            with ParquetFile(file) as table:
                for batch in table.iter_batches(BATCH):
                    yield batch.to_pylist()
            return
        # Excel begins a file with a byte order mark.
        with open(file, encoding="utf-8-sig", newline="") as stream:
            rows = _objects(stream) if suffix in LINES else _cells(stream, DELIMITERS[suffix])
            yield from _batches(rows)
    except UnicodeDecodeError as error:
        raise ContractViolation(f"{file}: not UTF-8 ({error.reason}); save it as UTF-8") from error
    except (csv.Error, ValueError) as error:  # pyarrow's are among them
        raise ContractViolation(f"{file}: {str(error).splitlines()[0][:200]}") from error


@contextmanager
def written(file: Path, more: Mapping[str, type]) -> Iterator[Writer]:
    """A new file of rows; it bears its name once it is whole.

    Args:
        file: Its suffix says the format; one that is there is replaced at the end.
        more: Columns that rows may lack a value in, with the type of the others.
    """
    suffix = _suffix(file, "--output")
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        if suffix == ".parquet":
            writer = _Parquet(part, more)
            try:
                yield writer
            finally:
                writer.close()
        else:
            with open(part, "w", encoding="utf-8", newline="") as stream:
                yield _Lines(stream) if suffix in LINES else _Cells(stream, DELIMITERS[suffix])
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _suffix(file: Path, option: str) -> str:
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise RecipeError(f"{option}: expected a name that ends with one of {', '.join(SUFFIXES)}")
    return suffix


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch


def _cells(stream: IO[str], delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    head = stream.readline()
    if delimiter == "," and ";" in head and "," not in head:
        delimiter = ";"  # Excel's, where the comma is in numbers
    (names,) = csv.reader([head], delimiter=delimiter)
    for twin in {name for name in names if names.count(name) > 1}:
        raise ContractViolation(f"line 1: the column {twin!r} is there twice")
    reader = csv.reader(stream, delimiter=delimiter)
    for cells in reader:
        if cells and len(cells) != len(names):
            place = f"line {reader.line_num + 1}"
            raise ContractViolation(f"{place}: {len(cells)} cells, the head has {len(names)}")
        if cells:
            yield dict(zip(names, cells, strict=True))


def _objects(stream: IO[str]) -> Iterator[Row]:
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise ContractViolation(f"line {line}: {error.msg} at column {error.colno}") from error
        if not isinstance(row, dict):
            raise ContractViolation(
                f"line {line}: expected a JSON object, got {type(row).__name__}"
            )
        yield row


class _Cells:
    def __init__(self, stream: IO[str], delimiter: str):
        self._writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        self._names: list[str] | None = None

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows and self._names is None:
            self._names = list(rows[0])
            self._writer.writerow(self._names)
        for row in rows:
            self._writer.writerow([row.get(name) for name in self._names or ()])


class _Lines:
    def __init__(self, stream: IO[str]):
        self._stream = stream

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            self._stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class _Parquet:
    def __init__(self, file: Path, more: Mapping[str, type]):
        self._file = file
        self._more = more
        self._writer: Any = None

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        table = pyarrow.Table.from_pylist([dict(row) for row in rows])
        if self._writer is None:
            schema = table.schema
            for name, kind in self._more.items():
                typed = pyarrow.field(
                    name, pyarrow.float64() if kind is float else pyarrow.string()
                )
                schema = schema.set(schema.get_field_index(name), typed)
            self._writer = ParquetWriter(self._file, schema)
        self._writer.write_table(table.select(self._writer.schema.names).cast(self._writer.schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
