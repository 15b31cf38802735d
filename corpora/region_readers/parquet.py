"""Parquet files of region features, a row a picture.

Columns: ``image_id`` (text or a whole number), ``image_w``, ``image_h``, ``boxes`` (n × 4 numbers
in pixels) and ``features`` (n × E), lists of numbers, row by row, or lists of such lists. Where a
source has classes, ``objects_id`` and ``objects_conf``, ``attrs_id`` and ``attrs_conf`` (n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corpora.archives import Content
from corpora.detected import class_columns, detected
from corpora.readers.parquet import batches, spooled, whole
from corpora.regions import NoRegionsError, Regions
from data_contracts.sources import Pictures
from fourstage.errors import ContractViolation, listed

SUFFIXES = (".parquet", ".pq")
_COLUMNS = ("image_id", "image_w", "image_h", "boxes", "features")
_ROWS = 16  # at a time; one of 36 regions with 2,048 numbers has 300 kilobytes


def read(
    content: Content, wanted: Pictures, is_named: Callable[[str], bool]
) -> Iterator[tuple[str, Regions | NoRegionsError | None]]:
    """Each row's picture: its id, and its regions, why it has none, or None if no row names it.

    Raises:
        ContractViolation: It is not a whole Parquet file, lacks a column or has one of another
            type, or claims more than a file of its size can hold.
    """
    import pyarrow.parquet

    names = (*_COLUMNS, *class_columns(wanted))
    with spooled(content) as spool, whole(content):
        _check_columns(content, pyarrow.parquet.ParquetFile(spool).schema_arrow, names)
        line = 0
        for batch in batches(spool, content.where, names, _ROWS):
            columns = [batch.column(name) for name in names]
            for row in range(batch.num_rows):
                line += 1
                cells = [column[row] for column in columns]
                identity = cells[0]
                where = f"{content.name}:{line}"
                name = str(identity.as_py()) if identity.is_valid else ""
                if name and not is_named(name):
                    yield name, None
                    continue
                try:
                    yield name, _regions(cells, wanted)
                except NoRegionsError as error:
                    told = f"{where}: {error.detail}" if error.detail else where
                    yield name, NoRegionsError(error.reason, told)


def _check_columns(content: Content, schema: Any, names: Sequence[str]) -> None:
    from pyarrow import types

    missing = [name for name in names if name not in schema.names]
    if missing:
        raise ContractViolation(
            f"{content.where}: missing columns: {listed(missing, 5)}; expected {', '.join(names)}"
        )
    for name in names:
        kind, nested = schema.field(name).type, False
        while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            kind, nested = kind.value_type, True
        if name == "image_id":
            text = types.is_string(kind) or types.is_large_string(kind)
            fits = not nested and (text or types.is_integer(kind))
        elif name in ("image_w", "image_h"):
            fits = not nested and types.is_integer(kind)
        else:
            fits = nested and (types.is_floating(kind) or types.is_integer(kind))
        if not fits:
            raise ContractViolation(
                f"{content.where}: column {name!r}: expected text or a whole number for image_id,"
                " whole numbers for image_w and image_h, lists of numbers for all others,"
                f" got {schema.field(name).type}."
            )


def _regions(cells: list[Any], wanted: Pictures) -> Regions:
    if not all(cell.is_valid for cell in cells):
        raise NoRegionsError("a row with an empty cell")
    _, width, height, boxes, features, *classes = cells
    boxes = _matrix(boxes, 4)
    features = _matrix(features, max(len(features) // max(len(boxes), 1), 1))
    told = [cell.values.to_numpy(zero_copy_only=False) for cell in classes]
    return detected(boxes, features, width.as_py(), height.as_py(), wanted, told)


def _matrix(cell: Any, columns: int) -> np.ndarray:
    """(n, columns) of a list of numbers, or as it is of a list of lists."""
    values = cell.values.to_numpy(zero_copy_only=False)
    try:
        if values.dtype == object:
            return np.stack(values).astype(np.float64) if len(values) else np.zeros((0, columns))
        return values.reshape(-1, columns)
    except (ValueError, TypeError):  # lists of several lengths, or empty ones among them
        raise NoRegionsError("boxes or features that are not rows of equal length") from None
