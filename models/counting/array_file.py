"""Safetensors of arrays that may be larger than memory: written in blocks, read as memory maps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

_NAMES = {"uint64": "U64", "int64": "I64", "float64": "F64", "uint8": "U8"}
_DTYPES = {name: np.dtype(dtype) for dtype, name in _NAMES.items()}
_ROWS = 1_000_000  # rows written at a time
_LENGTH = 8  # bytes that hold the header's length


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of at least one row each; byte strings as (n, bytes) uint8."""
    plain = {
        name: array.view(np.uint8).reshape(len(array), -1) if array.dtype.kind == "S" else array
        for name, array in arrays.items()
    }
    # The format allows no gaps, so wide numbers come first and lie at multiples of their width.
    names = sorted(plain, key=lambda name: (-plain[name].itemsize, name))
    header: dict[str, dict] = {}
    end = 0
    for name in names:
        start, end = end, end + plain[name].nbytes
        kind, shape = _NAMES[plain[name].dtype.name], list(plain[name].shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(_LENGTH, "little") + text)
        for name in names:
            for row in range(0, len(plain[name]), _ROWS):
                block = np.ascontiguousarray(plain[name][row : row + _ROWS])
                file.write(block.data.cast("B"))


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """{name: array} that `write_arrays` wrote; uint8 rows are byte strings again."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(_LENGTH), "little")
        header = json.loads(file.read(size))
    found: dict[str, np.ndarray] = {}
    for name, said in header.items():
        dtype, shape = _DTYPES[said["dtype"]], said["shape"]
        offset = _LENGTH + size + said["data_offsets"][0]
        assert prod(shape) * dtype.itemsize == said["data_offsets"][1] - said["data_offsets"][0]
        array = np.memmap(path, dtype, "r", offset, tuple(shape))
        found[name] = array.view(f"S{shape[1]}")[:, 0] if said["dtype"] == "U8" else array
    return found
