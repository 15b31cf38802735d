"""Files of the vectors that each layer of a network gives to the tokens of texts.

Parquet has a row for each text and layer: ``id``, ``layer``, ``tokens`` and ``vectors``. HDF5 has a
data set for each text, (layers, T, D) float32, named by its place among the texts from 0 on, as the
files of AllenNLP's ELMo, with the attribute ``id``; its tokens are in the group ``tokens`` under
the same name, the layers' names are the file's attribute ``layers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fourstage.digests import unfinished
from fourstage.errors import RecipeError

ENDINGS = (".parquet", ".h5", ".hdf5")


@dataclass(frozen=True)
class ReadText:
    """A text as a network has read it.

    Attributes:
        id: What the text is known by.
        tokens: (T,) its tokens.
        vectors: (layers, T, D) float32.
    """

    id: str
    tokens: Sequence[str]
    vectors: np.ndarray


class LayerFile(Protocol):
    """Writes texts in order."""

    def write(self, texts: Sequence[ReadText]) -> None:
        """Append texts."""
        ...

    def close(self) -> None:
        """Write the end of the file."""
        ...


class _Hdf5:
    def __init__(self, file: Path, layers: Sequence[str]):
        import h5py

        self._file = h5py.File(file, "w")
        self._file.attrs["layers"] = list(layers)
        self._number = 0

    def write(self, texts: Sequence[ReadText]) -> None:
        import h5py

        for text in texts:
            made = self._file.create_dataset(str(self._number), data=text.vectors)
            made.attrs["id"] = text.id
            # Not an attribute: those end at 64 KB.
            tokens = np.array(list(text.tokens), object)
            self._file.create_dataset(
                f"tokens/{self._number}", data=tokens, dtype=h5py.string_dtype()
            )
            self._number += 1

    def close(self) -> None:
        self._file.close()


class _Parquet:
    def __init__(self, file: Path, layers: Sequence[str], width: int):
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        self._layers, self._width = layers, width
        vector = pyarrow.list_(pyarrow.float32(), width)
        self._schema = pyarrow.schema(
            {
                "id": pyarrow.string(),
                "layer": pyarrow.string(),
                "tokens": pyarrow.list_(pyarrow.string()),
                "vectors": pyarrow.list_(vector),
            }
        )
        self._writer = ParquetWriter(file, self._schema)

    def write(self, texts: Sequence[ReadText]) -> None:
        import pyarrow

        names = [(text, i) for text in texts for i in range(len(self._layers))]
        ends = np.cumsum([0, *(len(text.tokens) for text, _ in names)], dtype=np.int32)
        values = np.concatenate([text.vectors[i].reshape(-1) for text, i in names])
        rows: Any = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), self._width)
        columns = [
            pyarrow.array([text.id for text, _ in names]),
            pyarrow.array([self._layers[i] for _, i in names]),
            pyarrow.array([list(text.tokens) for text, _ in names], self._schema.field(2).type),
            pyarrow.ListArray.from_arrays(pyarrow.array(ends), rows, self._schema.field(3).type),
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def check_new(file: Path, replace: bool) -> None:
    """Refuse a file that cannot be written, before any work.

    Args:
        file: The file.
        replace: Whether it may be there.

    Raises:
        RecipeError: It is there, its ending is another, or its folder is missing.
    """
    if file.suffix.lower() not in ENDINGS:
        raise RecipeError(f"{file}: expected a name that ends with {', '.join(ENDINGS)}")
    if not file.parent.is_dir():
        raise RecipeError(f"{file}: there is no folder {file.parent}")
    if file.exists() and not (replace and file.is_file()):
        raise RecipeError(f"{file}: is there already; nothing was changed")


@contextmanager
def layer_file(file: Path, layers: Sequence[str], width: int) -> Iterator[LayerFile]:
    """Write a file; it appears under its name when it is complete.

    Args:
        file: Its ending is the format; replaced at the end if it is there.
        layers: Names of the layers.
        width: D.
    """
    part = unfinished(file)
    try:
        parquet = file.suffix.lower() == ENDINGS[0]
        writer = _Parquet(part, layers, width) if parquet else _Hdf5(part, layers)
        try:
            yield writer
        finally:
            writer.close()
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
