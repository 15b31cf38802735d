"""Regions that somebody's detector found, as numbers in a file: checked, and as ours are."""

from __future__ import annotations

import numpy as np

from corpora.regions import NoRegionsError, Regions
from data_contracts.sources import Pictures

_MOST_DIGITS = 9
_TOO_LARGE = 10**_MOST_DIGITS  # pixels
_SLACK = 1.0  # pixels by which a box may go beyond its picture: some count corners, some pixels


def detected(
    boxes: np.ndarray, features: np.ndarray, width: int, height: int, wanted: Pictures
) -> Regions:
    """The regions of one picture, in the file's order, of which the first are kept.

    Args:
        boxes: (n, 4) left, top, right, bottom in pixels.
        features: (n, E).
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
        wanted: The source's numbers: E is its `region_dim`, at most `most_regions` are kept.

    Raises:
        NoRegionsError: There are none, their numbers do not fit together or are not finite, or a
            box is outside the picture.
    """
    if len(boxes) != len(features) or boxes.shape[1:] != (4,):
        raise NoRegionsError("boxes that do not fit the features")
    if not len(boxes):
        raise NoRegionsError("a picture without regions")
    if features.shape[1] != wanted.region_dim:
        told = f"{features.shape[1]} numbers, region_dim is {wanted.region_dim}"
        raise NoRegionsError("features of another width than region_dim", told)
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
    return Regions(shares[:most], features[:most], len(boxes), width, height)


def whole_number(text: bytes) -> int:
    """A count or a size in digits, of at most nine.

    Raises:
        NoRegionsError: It is not one.
    """
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        raise NoRegionsError("a size or a number of boxes that is not a whole number")
    return int(text)
