"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from corpora.archives import Content
from corpora.limits import MEBIBYTE
from corpora.readers import Raw
from corpora.streams import RatioGuard
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation, did_you_mean

SUFFIXES = (".parquet", ".pq")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each row, with only the columns that have a role.

    Raises:
        ContractViolation: It is not a Parquet file, is damaged, lacks a column, or claims more
            content than a file of its size can hold.
    """
    import pyarrow.parquet

    with spooled(content) as spool, whole(content):
        names = pyarrow.parquet.ParquetFile(spool).schema_arrow.names
        line = 0
        for batch in batches(spool, content.where, _wanted(content, source, names), 256):
            names, arrays = batch.schema.names, batch.columns
            for row in range(batch.num_rows):
                line += 1
                values = [array[row].as_py() for array in arrays]
                yield Raw(line, dict(zip(names, values, strict=True)))


def columns(content: Content, source: Source) -> list[str]:
    """The names of its columns.

    Raises:
        ContractViolation: It is not a Parquet file, or is damaged.
    """
    import pyarrow.parquet

    with spooled(content) as spool, whole(content):
        return list(pyarrow.parquet.ParquetFile(spool).schema_arrow.names)


@contextmanager
def spooled(content: Content) -> Iterator[IO[bytes]]:
    """An unnamed temporary copy of a stream: Parquet is read from its end."""
    with tempfile.TemporaryFile() as spool:
        while piece := content.stream.read(MEBIBYTE):
            spool.write(piece)
        yield spool


@contextmanager
def whole(content: Content) -> Iterator[None]:
    """Raise errors of Arrow as ours, with the name of the file."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        # Arrow's messages may quote values, so only the type of the error is passed on.
        raise ContractViolation(
            f"{content.where}: not a whole Parquet file ({type(error).__name__}); write it again."
        ) from error


def batches(spool: IO[bytes], where: str, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Arrow's batches of rows, each weighed before its texts are unpacked.

    Text stays dictionary-encoded until its row is read: a file of a few kilobytes can claim that
    millions of rows, or one list, contain the same long text.

    Args:
        spool: The file, read to its end.
        where: Its name in messages.
        columns: The names of those to read.
        rows: Most rows of a batch.

    Raises:
        ContractViolation: It claims more content than a file of its size can hold.
    """
    import pyarrow.parquet

    size = spool.tell()
    file = pyarrow.parquet.ParquetFile(spool)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    # A row without content takes a byte, as its line of text would.
    claimed = sum(max(group.total_byte_size, group.num_rows) for group in groups)
    RatioGuard(where, size, claimed).check()
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    lists = [i for i, leaf in enumerate(leaves) if leaf.path.split(".")[0] in columns]
    lists = [i for i in lists if leaves[i].max_repetition_level]
    if lists:  # Arrow unpacks the whole list of a row at once, however long
        # Reads in constant memory. Where it fails, asking for the metadata of a column would abort
        # the process.
        file.scan_contents([leaves[i].path for i in lists])
        values = sum(group.column(i).num_values for group in groups for i in lists)
        RatioGuard(where, size, values).check()
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file = pyarrow.parquet.ParquetFile(spool, read_dictionary=texts)
    guard = RatioGuard(where, size)
    for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
        guard.given += sum(map(_weight, batch.columns))
        guard.check()
        yield batch


def _weight(array: Any) -> int:
    """Bytes of an array's values once each has its text for itself."""
    from pyarrow import types
    from pyarrow.compute import call_function

    if types.is_dictionary(array.type):
        lengths = call_function("binary_length", [array.dictionary]).take(array.indices)
        return call_function("sum", [lengths]).as_py() or 0
    if types.is_struct(array.type):
        return sum(map(_weight, array.flatten()))
    return _weight(array.flatten()) if types.is_nested(array.type) else array.nbytes


def _wanted(content: Content, source: Source, names: list[str]) -> list[str]:
    for role, column in source.columns_needed():
        if column not in names:
            raise ContractViolation(
                f"{content.where}: expected a column {column!r} ({role})"
                f"{did_you_mean(column, names)} Columns: "
                f"{', '.join(str(name)[:40] for name in names[:20])}."
            )
    wanted = [column for _, column in source.columns_named()]
    if source.fields.id is None:
        wanted.append("id")
    return [column for column in dict.fromkeys(wanted) if column in names]
