"""NumPy archives, one a picture; the file's name without ``.npz`` is the picture's.

Arrays: ``features`` (n, E) and ``boxes`` (n, 4) in pixels, ``image_w`` and ``image_h``; ``x`` and
``bbox`` are read in place of the first two. Where a source has classes, ``objects_id`` and
``objects_conf``, ``attrs_id`` and ``attrs_conf`` (n,). Others are not looked at, and nothing is
unpickled.

Reference:
    NumPy, `numpy.lib.format`. The other names: MILVLG/bottom-up-attention.pytorch.
"""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.lib import format as npy

from corpora.archives import ZIP_METHODS, Content
from corpora.detected import class_columns, detected
from corpora.limits import MAX_PICTURE_BYTES
from corpora.regions import NoRegionsError, Regions
from data_contracts.sources import Pictures

SUFFIXES = (".npz",)
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    RuntimeError,  # encrypted, an unknown compression, nested too deeply
    SyntaxError,  # NumPy's, of a broken header, and the next two
    tokenize.TokenError,
    MemoryError,
    ValueError,
    OverflowError,
    TypeError,
    zlib.error,
)


def read(
    content: Content, wanted: Pictures, is_named: Callable[[str], bool]
) -> Iterator[tuple[str, Regions | NoRegionsError | None]]:
    """The file's picture: its name, and its regions, why it has none, or None if no row names it.

    Raises:
        ContractViolation: The file cannot be read.
    """
    name = content.name[: content.name.lower().rindex(".npz")]
    if not is_named(name):
        yield name, None
        return
    data = content.stream.read(MAX_PICTURE_BYTES + 1)
    while len(data) <= MAX_PICTURE_BYTES and (piece := content.stream.read(1 << 20)):
        data += piece
    try:
        yield name, _regions(data, wanted, content.name)
    except NoRegionsError as error:
        yield name, error


def _regions(data: bytes, wanted: Pictures, where: str) -> Regions:
    if len(data) > MAX_PICTURE_BYTES:
        raise NoRegionsError(f"a picture of more than {MAX_PICTURE_BYTES:,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            boxes, features, width, height = (
                _array(archive, *names)
                for names in (("boxes", "bbox"), ("features", "x"), ("image_w",), ("image_h",))
            )
            told = [_array(archive, name) for name in class_columns(wanted)]
        if boxes.ndim != 2 or features.ndim != 2 or width.size != 1 or height.size != 1:
            raise NoRegionsError("boxes, features or a size of another shape")
        size = int(width.item()), int(height.item())
    except _DAMAGE:
        raise NoRegionsError("not a whole .npz file of numbers", where) from None
    return detected(boxes, features, *size, wanted, told)


def _array(archive: zipfile.ZipFile, *names: str) -> np.ndarray:
    """The array of the first name that there is; its header is not believed before it is checked.

    Raises:
        NoRegionsError: There is none, or it is not of numbers that fit its size.
    """
    present = set(archive.namelist())
    name = next((name for name in names if f"{name}.npy" in present), None)
    if name is None:
        raise NoRegionsError("an .npz file that lacks an array", " or ".join(names))
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type not in ZIP_METHODS:
        raise NoRegionsError("an .npz array not packed with deflate; pack it again", name)
    with archive.open(member) as file:
        data = file.read(MAX_PICTURE_BYTES + 1)
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_column, kind = header(stream)
    if kind.kind not in "fiu" or math.prod(shape) * kind.itemsize != len(data) - stream.tell():
        raise NoRegionsError("an array that is not of numbers, or not as many as it says", name)
    flat = np.frombuffer(data, kind, offset=stream.tell())
    return flat.reshape(shape, order="F" if by_column else "C")
