"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from difflib import get_close_matches

from corpora.archives import Content
from corpora.limits import MEBIBYTE
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation

SUFFIXES = (".parquet", ".pq")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """Each row, of the columns that play a role only.

    Raises:
        ContractViolation: It is no Parquet file, is damaged, or lacks a column.
    """
    import pyarrow
    import pyarrow.parquet

    # The format is read from its end, so a stream is spooled first; the copy has no name.
    with tempfile.TemporaryFile() as spool:
        while piece := content.stream.read(MEBIBYTE):
            spool.write(piece)
        spool.seek(0)
        try:
            file = pyarrow.parquet.ParquetFile(spool)
            names = file.schema_arrow.names
            wanted = _wanted(content, source, names)
            line = 0
            for batch in file.iter_batches(batch_size=1024, columns=wanted):
                for row in batch.to_pylist():
                    line += 1
                    yield Raw(line, row)
        except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
            # Arrow's messages may quote values: only their kind is passed on.
            raise ContractViolation(
                f"{content.where}: not a whole Parquet file ({type(error).__name__}); write it "
                "again."
            ) from error


def _wanted(content: Content, source: Source, names: list[str]) -> list[str]:
    fields = source.fields
    wanted = []
    for role, column in fields.model_dump().items():
        if column is None:
            continue
        if column not in names:
            near = get_close_matches(column, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ContractViolation(
                f"{content.where}: expected a column {column!r} (fields.{role}){hint} Columns: "
                f"{', '.join(str(name)[:40] for name in names[:20])}."
            )
        wanted.append(column)
    if fields.id is None and "id" in names:
        wanted.append("id")
    return list(dict.fromkeys(wanted))
