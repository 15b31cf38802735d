"""Weights as named arrays: names are paths below a layer, the same on every backend."""

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


def named_weights(layer: Any) -> dict[str, Any]:
    """The layer's own variables (no seed states) by their paths below it.

    Args:
        layer: A built Keras layer or model.

    Returns:
        {``block_0/attention/query/kernel``: variable} in the order of making.
    """
    prefix = f"{layer.path}/"
    named = {variable.path.removeprefix(prefix): variable for variable in layer.weights}
    # Two variables under one name would overwrite each other in the file.
    assert len(named) == len(layer.weights), f"names repeat below {layer.path}"
    return named


def save_weights(layer: Any, path: Path) -> None:
    """Write the layer's weights as safetensors, atomically and with stable bytes."""
    # np.array and not ascontiguousarray: the latter turns a scalar into a vector.
    arrays = {
        name: np.array(_numpy(variable), order="C")
        for name, variable in named_weights(layer).items()
    }
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
        pass
    try:
        try:
            save_file(arrays, part.name)
        except SafetensorError as error:  # how it says that a disk is full
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]) if number else errno.EIO, str(error)) from error
        os.replace(part.name, path)
    finally:
        Path(part.name).unlink(missing_ok=True)


def load_weights(layer: Any, source: Path | Mapping[str, np.ndarray]) -> None:
    """Assign every weight of the layer from a safetensors file or from named arrays.

    Raises:
        ValueError: If names or shapes differ; nothing is assigned then.
    """
    arrays = load_file(source) if isinstance(source, Path) else source
    named = named_weights(layer)
    where = source if isinstance(source, Path) else "the given arrays"
    missing, surplus = sorted(named.keys() - arrays.keys()), sorted(arrays.keys() - named.keys())
    if missing or surplus:
        raise ValueError(
            f"{where}: the names of the weights differ; missing {missing[:3]} ({len(missing)} in "
            f"all), surplus {surplus[:3]} ({len(surplus)} in all). Was it made by another family?"
        )
    for name, variable in named.items():
        if tuple(variable.shape) != arrays[name].shape:
            raise ValueError(
                f"{where}: {name} has shape {arrays[name].shape}, expected "
                f"{tuple(variable.shape)}. Was it made with another size or vocabulary?"
            )
    for name, variable in named.items():
        variable.assign(arrays[name])


def _numpy(variable: Any) -> np.ndarray:
    """A variable's value on the host."""
    return np.asarray(variable.numpy() if hasattr(variable, "numpy") else variable)
