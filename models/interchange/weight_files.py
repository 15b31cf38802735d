"""Tensors of a checkpoint in one or several safetensors files. Pickles are never opened."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fourstage.errors import ContractViolation, RecipeError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLE = re.compile(r".*\.(bin|pt|pth|pkl|ckpt)(\.index\.json)?")
SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.safetensors")
FLOATS = ("F16", "BF16", "F32")
# transformers requires this key; a single one, because the order of several is not stable.
METADATA = {"format": "pt"}


class WeightFiles:
    """The tensors of a folder by name; shapes are read at once, values on request.

    Args:
        folder: Folder with ``model.safetensors``, or ``model.safetensors.index.json`` and its
            shards.

    Raises:
        RecipeError: There is only a pickle, or nothing.
        ContractViolation: A file is malformed; none of its values have been read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.files: dict[str, Path] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.types: dict[str, str] = {}
        if (folder / SINGLE).is_file():
            self._open(folder / SINGLE)
        elif (folder / INDEX).is_file():
            self._open_all(folder / INDEX)
        else:
            raise RecipeError(_what_there_is(folder))

    def array(self, name: str) -> np.ndarray:
        """A tensor's values as float32.

        Raises:
            ContractViolation: Some of them are NaN or infinite.
        """
        with safe_open(self.files[name], framework="numpy") as file:
            found = np.asarray(file.get_tensor(name), np.float32)
        check_finite(self.files[name], {name: found})
        return found

    def _open(self, path: Path) -> None:
        try:
            with safe_open(path, framework="numpy") as file:
                for name in file.keys():
                    part = file.get_slice(name)
                    if name in self.files:
                        raise ContractViolation(
                            f"{path}: {name!r} is in {self.files[name].name} as well"
                        )
                    self.files[name] = path
                    self.shapes[name] = tuple(part.get_shape())
                    self.types[name] = part.get_dtype()
        except (SafetensorError, OSError) as error:
            raise ContractViolation(
                f"{path}: not a safetensors file or damaged ({error}); download it again"
            ) from error

    def _open_all(self, index: Path) -> None:
        try:
            where = json.loads(index.read_text("utf-8"))["weight_map"]
            parts = sorted(set(where.values()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ContractViolation(
                f"{index}: expected {{'weight_map': {{tensor: file}}}}; got something else"
            ) from error
        for part in parts:
            # The index is not trusted: a name in it could be a path out of the folder.
            if not isinstance(part, str) or not SHARD.fullmatch(part):
                raise RecipeError(
                    f"{index}: {str(part)[:80]!r} is not the name of a safetensors file"
                )
            if not (self.folder / part).is_file():
                raise ContractViolation(
                    f"{index}: {part} is missing; download the whole checkpoint"
                )
            self._open(self.folder / part)
        held = {name: path.name for name, path in self.files.items()}
        wrong = [
            f"{name} is in {held.get(name, 'none of them')}, listed in {where.get(name, 'none')}"
            for name in sorted({*where, *held})
            if where.get(name) != held.get(name)
        ]
        if wrong:
            raise ContractViolation(
                f"{index}: its list and the files differ in {len(wrong)} tensors:"
                f" {'; '.join(wrong[:5])}; download the whole checkpoint again"
            )


def check_finite(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse weights that are not finite.

    Args:
        path: File they were read from, for the message.
        arrays: {name: weights}.

    Raises:
        ContractViolation: A weight is NaN or infinite.
    """
    for name, array in arrays.items():
        odd = array.size - np.count_nonzero(np.isfinite(array))
        if odd:
            raise ContractViolation(
                f"{path}: {odd:,} of the {array.size:,} values of {name} are NaN or infinite,"
                " expected numbers; download the checkpoint again, or use one that was saved"
                " before training diverged"
            )


def _what_there_is(folder: Path) -> str:
    pickles = sorted(path.name for path in folder.iterdir() if PICKLE.fullmatch(path.name))
    if not pickles:
        return f"{folder}: expected {SINGLE} or {INDEX}; neither is there"
    return (
        f"{folder}: {pickles[0]} is a pickle and is never read, because loading a pickle can run"
        " arbitrary code. If you trust it, convert it where transformers is"
        ' installed: python -c "from transformers import AutoModelForPreTraining as A;'
        " A.from_pretrained('OLD').save_pretrained('NEW')\""
    )


def write_tensors(arrays: Mapping[str, np.ndarray], folder: Path, largest_file: int) -> None:
    """Write tensors to one file, or to several with an index.

    Args:
        arrays: {name: tensor}, in order.
        folder: An existing folder.
        largest_file: Largest size of a file in bytes; a tensor that exceeds it gets its own file.
    """
    parts: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, array in arrays.items():
        if parts[-1] and size + array.nbytes > largest_file:
            parts.append({})
            size = 0
        parts[-1][name] = np.array(array, order="C")
        size += array.nbytes
    if len(parts) == 1:
        save_file(parts[0], folder / SINGLE, metadata=METADATA)
        return
    where: dict[str, str] = {}
    for number, part in enumerate(parts, start=1):
        file = f"model-{number:05d}-of-{len(parts):05d}.safetensors"
        save_file(part, folder / file, metadata=METADATA)
        where |= dict.fromkeys(part, file)
    total = sum(array.nbytes for array in arrays.values())
    index: dict[str, Any] = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", "utf-8")
