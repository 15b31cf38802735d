"""Checkpoints of a stage: written atomically, verified when read.

A checkpoint is a folder with two files. ``state.safetensors`` has every variable of model and
optimizer, numbered in order, because automatic names differ between processes. ``state.json`` has
the training state and the digest of the arrays. A checkpoint is written under a temporary name,
synchronised to disk and renamed. The last two are kept, so that a damaged one can be replaced by
the previous one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from fourstage.errors import EnvironmentFault
from fourstage.terminal import say

ARRAYS = "state.safetensors"
DETAILS = "state.json"
KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """An intact checkpoint.

    Attributes:
        step: Optimizer updates done.
        arrays: Values of the variables, in order.
        details: Training state as plain JSON: progress, running means, metric history.
    """

    step: int
    arrays: tuple[np.ndarray, ...]
    details: Mapping[str, Any]


def write(
    folder: Path,
    step: int,
    arrays: Sequence[np.ndarray],
    details: Mapping[str, Any],
    *,
    series: str = "step",
) -> Path:
    """Write a checkpoint and delete all but the last two of its series.

    Args:
        folder: Folder of the checkpoints; created if missing.
        step: Optimizer updates done.
        arrays: Values of the variables, in order.
        details: Training state as plain JSON.
        series: Name of the series; the best weights so far are a separate series.

    Raises:
        EnvironmentFault: The checkpoint could not be written. Earlier checkpoints are kept.
    """
    final = folder / f"{series}-{step:09d}"
    part = folder / f".{series}-{step:09d}.part"
    size = sum(array.nbytes for array in arrays)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        save_file(
            {f"{i:05d}": np.array(array, order="C") for i, array in enumerate(arrays)},
            part / ARRAYS,
        )
        written = {"step": step, "arrays": len(arrays), "sha256": _sha256(part / ARRAYS)}
        text = json.dumps({"checkpoint": written, "details": dict(details)}, allow_nan=True)
        (part / DETAILS).write_text(text, "utf-8")
        for path in (part / ARRAYS, part / DETAILS, part):
            _synchronise(path)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(part, final)
        _synchronise(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(part, ignore_errors=True)
        cause = getattr(error, "strerror", None) or type(error).__name__
        raise EnvironmentFault(
            f"{folder}: no space for a checkpoint of {size / 1e6:.0f} MB ({cause});"
            " free some space and run again to resume from the previous checkpoint"
        ) from error
    for old in written_steps(folder, series)[:-KEPT]:
        shutil.rmtree(folder / f"{series}-{old:09d}")
    return final


def newest(
    folder: Path, usable: Callable[[Checkpoint], bool] = lambda _: True
) -> Checkpoint | None:
    """The newest intact checkpoint of those that are usable; damaged ones are told."""
    for step in reversed(written_steps(folder)):
        found = read(folder, step)
        if not isinstance(found, Checkpoint):
            say(f"{found}; using the previous checkpoint instead")
        elif usable(found):
            return found
    return None


def read(folder: Path, step: int, series: str = "step") -> Checkpoint | str:
    """A checkpoint, or a message if it is damaged."""
    place = folder / f"{series}-{step:09d}"
    try:
        stored = json.loads((place / DETAILS).read_text("utf-8"))
        written = stored["checkpoint"]
        if _sha256(place / ARRAYS) != written["sha256"]:
            return f"{place / ARRAYS}: damaged, its digest is not the recorded one"
        named = load_file(place / ARRAYS)
        arrays = tuple(named[f"{i:05d}"] for i in range(written["arrays"]))
        return Checkpoint(step, arrays, stored["details"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{place}: unreadable ({type(error).__name__})"


def written_steps(folder: Path, series: str = "step") -> list[int]:
    """Steps of the checkpoints in a folder, oldest first."""
    return sorted(int(path.name.rpartition("-")[2]) for path in folder.glob(f"{series}-*"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _synchronise(path: Path) -> None:
    """Flush to disk, so that a power failure can't leave a file name without its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
