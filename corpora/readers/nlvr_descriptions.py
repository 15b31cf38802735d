"""Captions made from the descriptions of pictures in the JSON lines of NLVR.

Each line describes its picture by three boxes of items (``structured_rep``). A row has the columns
``id`` (the example's identifier and the caption's number), ``sentence`` (`corpora.scene_captions`),
``label`` (always ``true``) and ``picture``. The sentence that people wrote is not read.

Reference:
    Suhr et al. 2017, ACL P17-2034.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from corpora.archives import Content
from corpora.readers import Raw
from corpora.readers.jsonl import read as read_lines
from corpora.readers.nlvr import picture_of
from corpora.scene_captions import COLOURS, SHAPES, SIDE, Item, captions
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = ()  # files end in .json, which means JSON lines
CAPTIONS = 10  # of a picture

_COLOURS = {colour: colour for colour in COLOURS} | {"#0099ff": "blue"}
_SIZES = {10: "small", 20: "medium", 30: "big"}


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """The captions of each picture. The file is called as the split in its pictures' names."""
    for item in read_lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        location = f"{content.name}:{item.line}"
        identity, directory = item.values.get("identifier"), item.values.get("directory")
        if not (isinstance(identity, str) and isinstance(directory, str)):
            yield Rejected(location, location, "not text in each of identifier, directory")
            continue
        boxes = _boxes(item.values.get("structured_rep"))
        if boxes is None:
            yield Rejected(identity, location, "not three boxes of known items in structured_rep")
            continue
        picture = picture_of(content, identity, directory)
        for number, sentence in enumerate(captions(picture, boxes, CAPTIONS)):
            values = {"id": f"{identity}.{number}", "sentence": sentence, "label": "true"}
            yield Raw(item.line, {**values, "picture": picture})


def _boxes(given: Any) -> list[list[Item]] | None:
    """The items of each box; None for another form."""
    if not (isinstance(given, list) and len(given) == 3):
        return None
    boxes: list[list[Item]] = []
    for box in given:
        items = [_item(each) for each in box] if isinstance(box, list) else [None]
        found = [item for item in items if item is not None]
        if len(found) < len(items):
            return None
        boxes.append(found)
    return boxes if any(boxes) else None


def _item(given: Any) -> Item | None:
    """An item in its box; None for an unknown shape, colour or size, or a place outside."""
    if not isinstance(given, dict):
        return None
    shape, colour = given.get("type"), given.get("color")
    lengths = [given.get(key) for key in ("x_loc", "y_loc", "size")]
    if shape not in SHAPES or not isinstance(colour, str) or colour.lower() not in _COLOURS:
        return None
    if not all(type(length) is int for length in lengths):
        return None
    left, top, side = cast(list[int], lengths)
    if side not in _SIZES or not (0 <= left <= SIDE - side and 0 <= top <= SIDE - side):
        return None
    right, bottom = left + side, top + side
    return Item(shape, _COLOURS[colour.lower()], _SIZES[side], left, right, top, bottom)
