"""Writes Arrow IPC files in batches; a file appears under its name only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow
import pyarrow.parquet

from fourstage.digests import unfinished

BATCH_ROWS = 2048
BATCH_BYTES = 8 << 20


class TableWriter:
    """Writes rows to an Arrow IPC file, or to a Parquet file if its suffix says so.

    The file may contain users' text, so only its owner can read it.

    Args:
        path: Where the file is once the ``with`` block ends without an error.
        schema: Its columns.
    """

    def __init__(self, path: Path, schema: pyarrow.Schema):
        self.path = path
        self._schema = schema
        self._temporary = unfinished(path)
        self._columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self._bytes = 0
        self._rows = 0

    def __enter__(self) -> Self:
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._sink = os.fdopen(descriptor, "wb")
        if self.path.suffix == ".parquet":
            self._parquet = pyarrow.parquet.ParquetWriter(self._sink, self._schema)
            self._stream = None
        else:
            self._parquet = None
            self._stream = pyarrow.ipc.new_file(self._sink, self._schema)
        return self

    def add(self, row: Mapping[str, Any], num_bytes: int = 256) -> None:
        """Add one row; `num_bytes` is its approximate size, which keeps batches small."""
        for name, column in self._columns.items():
            column.append(row[name])
        self._rows += 1
        self._bytes += num_bytes
        if self._rows >= BATCH_ROWS or self._bytes >= BATCH_BYTES:
            self._flush()

    def add_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Add a finished batch after the rows added one by one."""
        self._flush()
        self._write(batch)

    def _flush(self) -> None:
        if not self._rows:
            return
        arrays = [
            pyarrow.array(self._columns[field.name], type=field.type) for field in self._schema
        ]
        self._write(pyarrow.record_batch(arrays, schema=self._schema))
        self._columns = {name: [] for name in self._schema.names}
        self._rows = self._bytes = 0

    def _write(self, batch: pyarrow.RecordBatch) -> None:
        if self._parquet is not None:
            self._parquet.write_batch(batch)
        elif self._stream is not None:
            self._stream.write_batch(batch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._flush()
                (self._parquet or self._stream).close()  # pyright: ignore[reportOptionalMemberAccess]
                self._sink.flush()
                os.fsync(self._sink.fileno())
        finally:
            self._sink.close()
            if kind is not None:
                self._temporary.unlink(missing_ok=True)
        if kind is None:
            os.replace(self._temporary, self.path)
