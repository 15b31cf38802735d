"""Regions that somebody's detector found, as numbers in a file: checked, and as ours are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corpora.regions import NoRegionsError, Regions
from data_contracts.sources import Pictures

_MOST_DIGITS = 9
_TOO_LARGE = 10**_MOST_DIGITS  # pixels
_SLACK = 1.0  # pixels by which a box may go beyond its picture: some count corners, some pixels
_ROUNDING = 1e-3  # by which a probability may be above 1
# The names of LXMERT's columns: classes as whole numbers from 0, and the probability of each.
CLASS_COLUMNS = ("objects_id", "objects_conf", "attrs_id", "attrs_conf")


def class_columns(wanted: Pictures) -> tuple[str, ...]:
    """The columns that are read of a source's files, of `CLASS_COLUMNS`; none by default."""
    return CLASS_COLUMNS[: 2 * len(wanted.classes)]


def detected(
    boxes: np.ndarray,
    features: np.ndarray,
    width: int,
    height: int,
    wanted: Pictures,
    told: Sequence[np.ndarray] = (),
) -> Regions:
    """The regions of one picture, in the file's order, of which the first are kept.

    Args:
        boxes: (n, 4) left, top, right, bottom in pixels.
        features: (n, E).
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
        wanted: The source's numbers: E is its `region_dim`, at most `most_regions` are kept.
        told: (n,) each, the `class_columns`.

    Raises:
        NoRegionsError: There are none, their numbers do not fit together or are not finite, a box
            is outside the picture, or a class is none of the source's.
    """
    if len(boxes) != len(features) or boxes.shape[1:] != (4,):
        raise NoRegionsError("boxes that do not fit the features")
    if not len(boxes):
        raise NoRegionsError("a picture without regions")
    if features.shape[1] != wanted.region_dim:
        widths = f"{features.shape[1]} numbers, region_dim is {wanted.region_dim}"
        raise NoRegionsError("features of another width than region_dim", widths)
    if not (1 <= width < _TOO_LARGE and 1 <= height < _TOO_LARGE):
        raise NoRegionsError("a picture without a size")
    with np.errstate(over="ignore"):
        boxes, features = boxes.astype(np.float32), features.astype(np.float32)
    if not (np.isfinite(boxes).all() and np.isfinite(features).all()):
        raise NoRegionsError("boxes or features that are not finite numbers")
    first, last = boxes[:, :2], boxes[:, 2:]
    size = np.array([width, height], np.float32)
    if (first < -_SLACK).any() or (last > size + _SLACK).any() or (first > last).any():
        raise NoRegionsError("a box outside its picture")
    shares = np.clip(boxes / np.tile(size, 2), 0.0, 1.0)
    most = wanted.most_regions
    classes, sure = _classes(told, len(boxes), wanted)
    return Regions(
        shares[:most], features[:most], len(boxes), width, height, classes[:most], sure[:most]
    )


def _classes(
    told: Sequence[np.ndarray], count: int, wanted: Pictures
) -> tuple[np.ndarray, np.ndarray]:
    """Classes (n, 2) int32 and the probability of each, float32; n is 0 where none are wanted."""
    shape = count if wanted.classes else 0, 2
    classes, sure = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    columns = zip(wanted.classes, told[::2], told[1::2], strict=True)
    for column, (number, ids, confidence) in enumerate(columns):
        if ids.shape != (count,) or confidence.shape != (count,):
            raise NoRegionsError("classes or confidences of another number than the boxes")
        if ids.dtype.kind not in "iu" or confidence.dtype.kind not in "fiu":
            raise NoRegionsError("classes that are not whole numbers, or confidences that are none")
        if (ids < 0).any() or (ids >= number).any():
            name = ("object", "attribute")[column]
            most = f"{int(ids.min())} to {int(ids.max())}, {name}_classes is {number}"
            raise NoRegionsError("a class that is none of the source's", most)
        if not ((confidence >= 0) & (confidence <= 1 + _ROUNDING)).all():  # NaN is neither
            raise NoRegionsError("a confidence that is not from 0 to 1")
        classes[:, column] = ids
        sure[:, column] = np.minimum(confidence, 1.0)
    return classes, sure


def whole_number(text: bytes) -> int:
    """A count or a size in digits, of at most nine.

    Raises:
        NoRegionsError: It is not one.
    """
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        raise NoRegionsError("a size or a number of boxes that is not a whole number")
    return int(text)
