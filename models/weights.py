"""Weights as named arrays. Names are paths relative to a layer, the same on every backend."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

WIDE = "wide/"  # names of the weights of a head's wide part begin so; no update changes them


def named_weights(layer: Any) -> dict[str, Any]:
    """The layer's weights, without seed states, by their paths relative to the layer.

    Args:
        layer: A built Keras layer or model.

    Returns:
        {path, such as ``block_0/attention/query/kernel``: variable} in order of creation.
    """
    prefix = f"{layer.path}/"
    named = {variable.path.removeprefix(prefix): variable for variable in layer.weights}
    # Two variables under one name would overwrite each other in the file.
    assert len(named) == len(layer.weights), f"names repeat below {layer.path}"
    return named


def array_of(variable: Any) -> np.ndarray:
    """A copy of a variable's values."""
    # np.ascontiguousarray would turn a scalar into a vector.
    return np.array(variable.numpy(), order="C")


def save_weights(layer: Any, path: Path) -> None:
    """Write the layer's weights as safetensors, atomically and with stable bytes."""
    arrays = {name: array_of(variable) for name, variable in named_weights(layer).items()}
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
        pass
    try:
        try:
            save_file(arrays, part.name)
        except SafetensorError as error:  # raised for OS errors, too, such as a full disk
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]) if number else errno.EIO, str(error)) from error
        os.replace(part.name, path)
    finally:
        Path(part.name).unlink(missing_ok=True)


def load_weights(layer: Any, source: Path | Mapping[str, np.ndarray]) -> None:
    """Assign every weight of the layer from a safetensors file or from named arrays.

    Raises:
        ValueError: Names or shapes differ; nothing has been assigned.
    """
    arrays = load_file(source) if isinstance(source, Path) else source
    named = named_weights(layer)
    where = source if isinstance(source, Path) else "the given arrays"
    missing, surplus = sorted(named.keys() - arrays.keys()), sorted(arrays.keys() - named.keys())
    if missing or surplus:
        raise ValueError(
            f"{where}: the names of the weights differ; missing {missing[:3]} ({len(missing)} in "
            f"total), unexpected {surplus[:3]} ({len(surplus)} in total). Is it of another family?"
        )
    for name, variable in named.items():
        if tuple(variable.shape) != arrays[name].shape:
            raise ValueError(
                f"{where}: {name} has shape {arrays[name].shape}, expected "
                f"{tuple(variable.shape)}. Is it of another size or vocabulary?"
            )
    for name, variable in named.items():
        variable.assign(arrays[name])


def part_of_weights(path: Path, part: str) -> dict[str, np.ndarray]:
    """Those of a safetensors file whose names begin with `part`, under the rest of their names."""
    return {
        name.removeprefix(part): array
        for name, array in load_file(path).items()
        if name.startswith(part)
    }
