"""The table of bottom-up attention: a line a picture, its boxes and features in base64.

Columns, without a header: ``image_id``, ``image_w``, ``image_h``, ``num_boxes``, ``boxes``,
``features``; or the ten of LXMERT's own files. Boxes are (n, 4) and features (n, E) float32, little
end first.

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
from corpora.detected import detected, whole_number
from corpora.regions import NoRegionsError, Regions
from corpora.streams import byte_lines
from data_contracts.sources import Pictures

SUFFIXES = (".tsv", ".tab")
# Places of id, width, height, number, boxes and features, by the number of columns. LXMERT's others
# are classes and attributes with their confidence.
_PLACES = {6: (0, 1, 2, 3, 4, 5), 10: (0, 2, 1, 7, 8, 9)}


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
        name = identity.decode("utf-8", "replace")
        if not is_named(name):
            yield name, None
            continue
        try:
            yield name, _regions(numbers, wanted)
        except NoRegionsError as error:
            told = f"{where}: {error.detail}" if error.detail else where
            yield name, NoRegionsError(error.reason, told)


def _regions(cells: list[bytes], wanted: Pictures) -> Regions:
    width, height, count = map(whole_number, cells[:3])
    boxes, features = map(_numbers, cells[3:])
    each = len(features) // max(count, 1)
    if len(boxes) != 4 * count or len(features) != each * count:
        raise NoRegionsError("boxes or features of another number than num_boxes")
    boxes, features = boxes.reshape(count, 4), features.reshape(count, each)
    return detected(boxes, features, width, height, wanted)


def _numbers(cell: bytes) -> np.ndarray:
    """(n,) float32 of a cell in base64."""
    try:
        return np.frombuffer(base64.b64decode(cell, validate=True), "<f4")
    except (binascii.Error, ValueError):  # numpy's, of bytes that are not whole numbers
        raise NoRegionsError("boxes or features that are not float32 in base64") from None
