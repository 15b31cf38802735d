"""The table of bottom-up attention: a line a picture, its boxes and features in base64.

Columns, without a header: ``image_id``, ``image_w``, ``image_h``, ``num_boxes``, ``boxes``,
``features``; or the ten of LXMERT's own files, which have classes, too. Boxes are (n, 4), features
(n, E) and confidences (n,) float32, classes (n,) int64, little end first.

Reference:
    Anderson et al. 2018, arXiv 1707.07998: peteanderson80/bottom-up-attention,
    `tools/generate_tsv.py`. Tan and Bansal 2019: airsplay/lxmert, `src/utils.py`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

import numpy as np

from corpora.archives import Content
from corpora.detected import class_columns, detected, whole_number
from corpora.regions import NoRegionsError, Regions
from corpora.streams import byte_lines
from data_contracts.sources import Pictures

SUFFIXES = (".tsv", ".tab")
# Places of id, width, height, number, boxes and features, by the number of columns.
_PLACES = {6: (0, 1, 2, 3, 4, 5), 10: (0, 2, 1, 7, 8, 9)}
_CLASSES = slice(3, 7)  # of ten columns: object, its confidence, attribute, its confidence


def read(
    content: Content, wanted: Pictures, is_named: Callable[[str], bool]
) -> Iterator[tuple[str, Regions | NoRegionsError | None]]:
    """Each line's picture: its id, and its regions, why it has none, or None if no row names it.

    Raises:
        ContractViolation: A line is too long, or the file cannot be read.
    """
    for number, _, line in byte_lines(content.stream, content.where):
        cells = line.rstrip(b"\r\n").split(b"\t")
        places = _PLACES.get(len(cells))
        where = f"{content.name}:{number}"
        if places is None:
            yield "", NoRegionsError("a line with another number of columns than 6 or 10", where)
            continue
        identity, *numbers = (cells[place] for place in places)
        told = cells[_CLASSES] if len(cells) == 10 else []
        name = identity.decode("utf-8", "replace")
        if not is_named(name):
            yield name, None
            continue
        try:
            yield name, _regions(numbers, told, wanted)
        except NoRegionsError as error:
            told = f"{where}: {error.detail}" if error.detail else where
            yield name, NoRegionsError(error.reason, told)


def _regions(cells: list[bytes], told: list[bytes], wanted: Pictures) -> Regions:
    width, height, count = map(whole_number, cells[:3])
    columns = class_columns(wanted)
    if len(columns) > len(told):
        raise NoRegionsError("a line without classes: one of six columns")
    kinds = {
        "id": ("<i8", "classes that are not int64"),
        "conf": ("<f4", "confidences that are not float32"),
    }
    classes = [
        _numbers(cell, *kinds[name.rpartition("_")[2]])
        for name, cell in zip(columns, told, strict=False)
    ]
    boxes, features = (
        _numbers(cell, "<f4", "boxes or features that are not float32") for cell in cells[3:]
    )
    each = len(features) // max(count, 1)
    if len(boxes) != 4 * count or len(features) != each * count:
        raise NoRegionsError("boxes or features of another number than num_boxes")
    boxes, features = boxes.reshape(count, 4), features.reshape(count, each)
    return detected(boxes, features, width, height, wanted, classes)


def _numbers(cell: bytes, kind: str, otherwise: str) -> np.ndarray:
    """(n,) numbers of a cell in base64."""
    try:
        return np.frombuffer(base64.b64decode(cell, validate=True), kind)
    except (binascii.Error, ValueError):  # numpy's, of bytes that are not whole numbers
        raise NoRegionsError(f"{otherwise} in base64") from None
