"""The regions of a picture: connected areas of one colour, each with numbers that describe it.

Pictures are decoded from untrusted bytes. The size that a header claims is checked before any pixel
is decoded, and what cannot be decoded is a `NoRegionsError` with a reason, never another error.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from corpora.limits import MAX_PIXELS, MAX_REGIONS

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = (".png", ".jpg", ".jpeg")
LONGEST_SIDE = 512  # pixels; a larger picture is shrunk first
_LEVELS = 8  # of each colour channel: pixels of the same levels are one colour
_LEAST_PIXELS = 9
# Per region: shares of red, green and blue levels, moments of its shape, numbers of its box.
NUM_FEATURES = 3 * _LEVELS + 8 + 7

# What Pillow raises on damaged input.
_DAMAGE = (
    OSError,  # UnidentifiedImageError among them
    SyntaxError,  # a broken PNG
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
)


class NoRegionsError(Exception):
    """A picture that has no regions to give.

    Args:
        reason: A phrase that is the same for the same cause.
        detail: Specifics, such as a size.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Regions:
    """The regions of one picture, the largest first.

    Attributes:
        boxes: (n, 4) float32, left, top, right, bottom, each 0 to 1; n is at least 1.
        features: (n, E) float32.
        found: Regions that there were, n of which are kept.
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
        classes: (n, 2) int32, the object class and the attribute that a detector tells; (0, 2)
            where it tells none.
        confidences: (n, 2) float32, the detector's probability of each; 0 where it tells none.
    """

    boxes: np.ndarray
    features: np.ndarray
    found: int
    width: int
    height: int
    classes: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    confidences: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.float32))


def regions_of(data: bytes, most: int = MAX_REGIONS) -> Regions:
    """The regions of a PNG or JPEG picture, the largest first.

    A region is a set of pixels, connected by their sides, whose red, green and blue are at the same
    of eight levels. One that is nowhere three pixels thick, such as the blurred edge of another, is
    left out, and so is one of fewer than nine pixels. Transparent pixels are as on a white page.

    A region's features, each about 0 to 1: the shares of its pixels at the eight levels of red, of
    green and of blue; of its pixels' places within its box, the standard deviation across and down,
    correlation, skewness across and down, kurtosis across and down divided by 3, and the share of
    the box that it fills; left, top, right, bottom, width, height and area as shares of the
    picture's.

    Args:
        data: The file.
        most: Regions that are kept.

    Raises:
        NoRegionsError: It cannot be decoded, is too large, or has no region.
    """
    pixels, width, height = _pixels(data)
    labels, sizes = _connected(pixels // (256 // _LEVELS))
    chosen = _thick(labels, sizes)
    if not len(chosen):
        raise NoRegionsError("a picture without regions")
    boxes, features = _described(pixels, labels, chosen[:most])
    return Regions(boxes, features, len(chosen), width, height)


def drawn(data: bytes | None, boxes: np.ndarray) -> bytes:
    """A picture of at most `LONGEST_SIDE`, with boxes drawn, as PNG.

    Args:
        data: The file; None for a white square, where there are features alone.
        boxes: (n, 4), left, top, right, bottom, each 0 to 1.

    Raises:
        NoRegionsError: It cannot be decoded or is too large.
    """
    from PIL import Image, ImageDraw

    if data is None:
        picture = Image.new("RGB", (LONGEST_SIDE, LONGEST_SIDE), "white")
    else:
        picture = Image.fromarray(_pixels(data)[0])
    pen = ImageDraw.Draw(picture)
    size = np.array(picture.size * 2)
    for left, top, right, bottom in (boxes * size).round().astype(int).tolist():
        pen.rectangle((left, top, max(right - 1, left), max(bottom - 1, top)), outline="magenta")
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _pixels(data: bytes) -> tuple[np.ndarray, int, int]:
    """(h, w, 3) uint8 of a picture, at most `LONGEST_SIDE` long; its own width and height."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are checked here
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as picture:
                width, height = picture.size
                if width * height > MAX_PIXELS:
                    raise NoRegionsError("a picture of too many pixels", f"{width:,} x {height:,}")
                return _opaque(picture), width, height
    except Image.DecompressionBombError:
        raise NoRegionsError("a picture of too many pixels") from None
    except _DAMAGE:
        raise NoRegionsError("not a whole PNG or JPEG picture") from None


def _opaque(picture: Image.Image) -> np.ndarray:
    """(h, w, 3) uint8, upright, on a white page."""
    from PIL import Image, ImageOps

    picture.draft("RGB", (2 * LONGEST_SIDE, 2 * LONGEST_SIDE))  # a large JPEG is decoded smaller
    picture.load()
    if picture.mode.startswith("I"):  # grey of 16 bits
        grey = np.asarray(picture).astype(np.int64) >> 8
        picture = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
    picture = ImageOps.exif_transpose(picture)
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        page = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(page, picture)
    picture = picture.convert("RGB")
    factor = -(-max(picture.size) // LONGEST_SIDE)
    return np.asarray(picture.reduce(factor) if factor > 1 else picture)


def _connected(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(h, w) number of each pixel's component, from 0 in the order of first pixels; their sizes."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    height, width, _ = levels.shape
    number = np.arange(height * width, dtype=np.int32).reshape(height, width)
    across = (levels[:, 1:] == levels[:, :-1]).all(axis=2)
    down = (levels[1:] == levels[:-1]).all(axis=2)
    one = np.concatenate([number[:, :-1][across], number[:-1][down]])
    other = np.concatenate([number[:, 1:][across], number[1:][down]])
    graph = coo_matrix((np.ones(len(one), np.int8), (one, other)), (number.size, number.size))
    _, labels = connected_components(graph, directed=False)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # as components are numbered is scipy's own business
    labels = order[labels]
    return labels.reshape(height, width), np.bincount(labels)


def _thick(labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Numbers of the components that are regions, the largest first, then by first pixel."""
    inner = labels[1:-1, 1:-1]
    inside = (inner == labels[:-2, 1:-1]) & (inner == labels[2:, 1:-1])
    inside &= (inner == labels[1:-1, :-2]) & (inner == labels[1:-1, 2:])
    wanted = np.unique(inner[inside])
    wanted = wanted[sizes[wanted] >= _LEAST_PIXELS]
    return wanted[np.argsort(-sizes[wanted], kind="stable")]


def _described(
    pixels: np.ndarray, labels: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (n, 4) and features (n, E) of some components."""
    from scipy.ndimage import find_objects

    height, width = labels.shape
    places: list = find_objects(labels + 1)
    boxes, features = [], []
    for label in chosen.tolist():
        rows, columns = places[label]
        mask = labels[rows, columns] == label
        area = int(mask.sum())
        levels = pixels[rows, columns][mask] // (256 // _LEVELS)  # (area, 3)
        counts = [np.bincount(levels[:, channel], minlength=_LEVELS) for channel in range(3)]
        tall, wide = mask.shape
        box = columns.start / width, rows.start / height, columns.stop / width, rows.stop / height
        boxes.append(box)
        features.append(
            [
                *(np.concatenate(counts) / area),
                *_moments(mask),
                *box,
                wide / width,
                tall / height,
                area / (width * height),
            ]
        )
    return np.array(boxes, np.float32), np.array(features, np.float32)


def _moments(mask: np.ndarray) -> list[float]:
    """The eight numbers of a region's shape, from the places of its pixels in its box."""
    tall, wide = mask.shape
    down, across = np.nonzero(mask)
    x, y = (across + 0.5) / wide, (down + 0.5) / tall  # 0-1
    x, y = x - x.mean(), y - y.mean()
    dx, dy = float(np.sqrt((x * x).mean())), float(np.sqrt((y * y).mean()))
    x, y = x / dx, y / dy  # a region is three pixels thick somewhere, so neither is 0
    return [
        dx,
        dy,
        float((x * y).mean()),
        float((x * x * x).mean()),
        float((y * y * y).mean()),
        float((x * x * x * x).mean()) / 3.0,
        float((y * y * y * y).mean()) / 3.0,
        len(x) / mask.size,
    ]
