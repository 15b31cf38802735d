"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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

    Text stays dictionary-encoded until its row is read: a file of a few kilobytes can claim that a
    million rows contain the same long text.

    Raises:
        ContractViolation: It is not a Parquet file, is damaged, lacks a column, or claims more
            content than a file of its size can hold.
    """
    import pyarrow
    import pyarrow.parquet

    with spooled(content) as spool, whole(content):
        size = spool.tell()
        file = pyarrow.parquet.ParquetFile(spool)
        schema = file.schema_arrow
        wanted = _wanted(content, source, schema.names)
        refuse_bomb(file.metadata, content.where, size)
        texts = [name for name in wanted if pyarrow.types.is_string(schema.field(name).type)]
        file = pyarrow.parquet.ParquetFile(spool, read_dictionary=texts)
        line = 0
        for batch in file.iter_batches(batch_size=256, columns=wanted):
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


def refuse_bomb(metadata: Any, where: str, size: int) -> None:
    """Compare the uncompressed size that the row groups claim with the size of the file."""
    guard = RatioGuard(where)
    guard.taken = size
    # Not by column: pyarrow aborts the process if the metadata of one is damaged.
    groups = range(metadata.num_row_groups)
    guard.given = sum(metadata.row_group(i).total_byte_size for i in groups)
    guard.check()


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
