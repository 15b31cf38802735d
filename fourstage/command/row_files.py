"""Reads and writes files of rows in batches: csv, tsv, jsonl and parquet."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Protocol

from fourstage.errors import ContractViolation, RecipeError, UnknownNameError

BATCH = 256  # rows read, predicted and written at a time
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
SUFFIXES = (*DELIMITERS, *LINES, ".parquet")
LONGEST_CELL = 2**30  # characters; the default, 131,072, is shorter than some documents

Row = dict[str, Any]


class FileWriter(Protocol):
    """Writes rows with the same columns."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows."""
        ...


def read_rows(file: Path, encoding: str | None = None) -> Iterator[list[Row]]:
    """The rows of a file, in batches, by column.

    Args:
        file: In csv, tsv, jsonl or parquet.
        encoding: Of its text; by default UTF-8, or what a byte order mark names.

    Raises:
        RecipeError: Its suffix does not name a format, or the encoding is none.
        ContractViolation: It cannot be read; the message names the line. Or it is of Parquet and
            claims more content than a file of its size can hold.
    """
    suffix = _suffix(file, "--input")
    try:
        if suffix == ".parquet":
            from pyarrow.parquet import ParquetFile

            from corpora.readers.parquet import batches

            with open(file, "rb") as stream:
                columns = ParquetFile(stream).schema_arrow.names
                stream.seek(0, os.SEEK_END)
                for batch in batches(stream, str(file), columns, BATCH):
                    yield batch.to_pylist()
            return
        with open(file, encoding=encoding or _marked(file), newline="") as stream:
            rows = _objects(stream) if suffix in LINES else _cells(stream, DELIMITERS[suffix])
            yield from _batches(rows)
    except LookupError as error:
        raise RecipeError(f"--encoding: {error}; utf-8 and gb18030 are encodings") from error
    except UnicodeDecodeError as error:
        raise ContractViolation(_otherwise(file, encoding or "UTF-8", error)) from error
    except (csv.Error, ValueError) as error:  # pyarrow's are among them
        raise ContractViolation(f"{file}: {str(error).splitlines()[0][:200]}") from error


def read_texts(
    file: Path, columns: Sequence[str], encoding: str | None = None
) -> Iterator[list[tuple[Row, list[str]]]]:
    """The rows of a file, in batches, each with its texts; a missing one is empty.

    A list, as JSON lines and Parquet may have, is as many texts.

    Args:
        file: As for `read_rows`.
        columns: The columns with the texts.
        encoding: As for `read_rows`.

    Raises:
        UnknownNameError: There is no such column.
    """
    for number, rows in enumerate(read_rows(file, encoding)):
        for column in columns:
            if not number and column not in rows[0]:  # later rows may lack it
                raise UnknownNameError(str(file), column, "a column of it", rows[0])
        yield [(row, [t for name in columns for t in _texts(row.get(name))]) for row in rows]


def read_one_text(
    file: Path, column: str, encoding: str | None = None
) -> Iterator[list[tuple[Row, str]]]:
    """The rows of a file, in batches, each with its only text; a missing one is empty.

    Args:
        file: As for `read_rows`.
        column: The column with the text.
        encoding: As for `read_rows`.

    Raises:
        UnknownNameError: There is no such column.
        ContractViolation: A cell is a list of more texts than one, or of none.
    """
    number = 0
    for batch in read_texts(file, [column], encoding):
        found = []
        for row, texts in batch:
            number += 1
            if len(texts) != 1:
                raise ContractViolation(
                    f"{file}: row {number}: expected one text in column {column}, got a list of"
                    f" {len(texts)}"
                )
            found.append((row, texts[0]))
        yield found


@contextmanager
def written(file: Path, more: Mapping[str, type]) -> Iterator[FileWriter]:
    """Write a file of rows; it appears under its name when it is complete.

    Args:
        file: Its suffix is the format; an existing file is replaced at the end.
        more: Columns in which values may be missing, with the type of the others.
    """
    suffix = _suffix(file, "--output")
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        if suffix == ".parquet":
            writer = _ParquetWriter(part, more)
            try:
                yield writer
            finally:
                writer.close()
        else:
            # No file can have half a surrogate pair, such as of an emoji that was cut: it is "?".
            with open(part, "w", encoding="utf-8", errors="replace", newline="") as stream:
                yield (
                    _LinesWriter(stream) if suffix in LINES else _Cells(stream, DELIMITERS[suffix])
                )
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def named(row: Row, number: int) -> Row:
    """What a row is known by: its id, or its number in the file."""
    return {"id": row["id"]} if "id" in row else {"row": number}


def _marked(file: Path) -> str:
    from corpora.decoding import marked_encoding

    with open(file, "rb") as stream:
        return marked_encoding(stream.read(4)) or "utf-8-sig"


def _otherwise(file: Path, encoding: str, error: UnicodeDecodeError) -> str:
    """What to do with a file that is not in an encoding."""
    from corpora.decoding import SAMPLE_BYTES, named_encoding

    with open(file, "rb") as stream:
        name = named_encoding(stream.read(SAMPLE_BYTES))
    reads = f"reads as {name.upper()}: --encoding {name}" if name else "save it as UTF-8"
    return f"{file}: not {encoding} ({error.reason}); {reads}"


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return ["" if each is None else str(each) for each in values]


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
    from corpora.delimited import SAMPLED_LINES, delimiter_of

    csv.field_size_limit(LONGEST_CELL)
    first = list(islice(stream, SAMPLED_LINES))
    reader = csv.reader(chain(first, stream), delimiter=delimiter_of(first, delimiter))
    names = next(reader, [])
    if not names:
        raise ContractViolation(
            "expected a header with the names of the columns, got an empty line"
        )
    for twin in {name for name in names if names.count(name) > 1}:
        raise ContractViolation(f"line 1: the column {twin!r} occurs twice")
    for cells in reader:
        if cells and len(cells) != len(names):
            place = f"line {reader.line_num}"
            raise ContractViolation(f"{place}: {len(cells)} cells, the header has {len(names)}")
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
        _refuse_other_columns(rows, self._names or ())
        for row in rows:
            self._writer.writerow([row.get(name) for name in self._names or ()])


def _refuse_other_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Refuse columns that the first row lacks: a table, unlike JSON lines, cannot have them."""
    for name in {name for row in rows for name in row} - set(names):
        raise ContractViolation(
            f"--output: a row has a column {name!r} that the first row lacks, which a table can't"
            " hold; give --output a name that ends with .jsonl"
        )


class _LinesWriter:
    def __init__(self, stream: IO[str]):
        self._stream = stream

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            self._stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


class _ParquetWriter:
    def __init__(self, file: Path, more: Mapping[str, type]):
        self._file = file
        self._more = more
        self._writer: Any = None

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        names = list(rows[0]) if self._writer is None else self._writer.schema.names
        _refuse_other_columns(rows, names)
        columns = {name: [row.get(name) for row in rows] for name in names}
        try:
            if self._writer is None:
                schema = pyarrow.table(columns).schema
                for name, kind in self._more.items():
                    typed = pyarrow.float64() if kind is float else pyarrow.string()
                    place = schema.get_field_index(name)
                    schema = schema.set(place, pyarrow.field(name, typed))
                self._writer = ParquetWriter(self._file, schema)
            self._writer.write_table(pyarrow.table(columns, self._writer.schema))
        except pyarrow.ArrowException as error:
            raise ContractViolation(
                "--output: a column has values of several types, which a Parquet file can't hold;"
                " give --output a name that ends with .jsonl"
            ) from error

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
