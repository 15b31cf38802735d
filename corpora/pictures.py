"""The pictures that the rows of a dataset name: read once, their regions kept in a file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow

from corpora.archives import Content, contents
from corpora.arrow_files import TableWriter
from corpora.limits import MAX_PICTURE_BYTES
from corpora.reading import read_rows
from corpora.region_readers import npz, parquet, tsv
from corpora.regions import SUFFIXES, NoRegionsError, Regions, regions_of
from corpora.snapshot import Snapshot
from data_contracts.records import Row
from data_contracts.sources import Pictures, Source
from fourstage.errors import ContractViolation

FILE = "regions.arrow"
REGIONS = pyarrow.schema(
    [
        pyarrow.field("picture", pyarrow.string(), nullable=False),
        # (n, 4) and (n, E), row by row.
        pyarrow.field("boxes", pyarrow.list_(pyarrow.float32()), nullable=False),
        pyarrow.field("features", pyarrow.list_(pyarrow.float32()), nullable=False),
        # (n, 2) each: object and attribute that a detector tells, how sure it is; empty for none.
        pyarrow.field("classes", pyarrow.list_(pyarrow.int32()), nullable=False),
        pyarrow.field("confidences", pyarrow.list_(pyarrow.float32()), nullable=False),
    ]
)


# Other pictures, so that rows that name one learn why it has no regions.
_OTHERS = (".avif", ".bmp", ".gif", ".heic", ".tif", ".tiff", ".webp")
_READERS = {suffix: each.read for each in (npz, parquet, tsv) for suffix in each.SUFFIXES}


@dataclass(frozen=True)
class KnownPicture:
    """A picture that was read.

    Attributes:
        name: Its name, of which there is one in the file of regions.
        digest: Of its regions: pictures with the same one look the same to a network.
    """

    name: str
    digest: str


@dataclass(frozen=True)
class PictureIndex:
    """What is known of each picture by its path and by each end of it.

    Attributes:
        known: A picture, or why it has no regions.
        counts: How many were read, by outcome.
    """

    known: dict[str, KnownPicture | NoRegionsError]
    counts: dict[str, Any]

    def named(self, name: str) -> KnownPicture:
        """The picture that a row names.

        Raises:
            NoRegionsError: There is none, there are several, or it has no regions.
        """
        found = self.known.get(name.removeprefix("./"))
        if found is None:
            raise NoRegionsError("a picture that is missing")
        if isinstance(found, NoRegionsError):
            raise NoRegionsError(found.reason, found.detail)
        return found


def read_pictures(source: Source, snapshot: Snapshot, folder: Path) -> PictureIndex | None:
    """Write the regions of a source's pictures to a folder; None for a source without pictures.

    Raises:
        ContractViolation: A file cannot be read, an archive is damaged or hostile, or there is no
            picture in them.
    """
    if source.pictures is None:
        return None
    known: dict[str, KnownPicture | NoRegionsError] = {}
    faults, found = Counter[str](), Counter[str]()
    is_named = _is_named(source, snapshot) if source.pictures.region_dim else None
    with TableWriter(folder / FILE, REGIONS) as writer:
        for state in snapshot.pictures:
            for content in contents(state):
                for name, regions in _read(content, source.pictures, is_named):
                    found["read"] += 1
                    if regions is None:
                        found["not_named"] += 1
                        continue
                    one: KnownPicture | NoRegionsError
                    if isinstance(regions, NoRegionsError):
                        one = regions
                        faults[regions.reason] += 1
                    else:
                        found["regions"] += len(regions.boxes)
                        found["with_more_regions"] += regions.found > len(regions.boxes)
                        one = KnownPicture(name, _digest(regions))
                        writer.add(
                            {
                                "picture": name,
                                "boxes": regions.boxes.ravel(),
                                "features": regions.features.ravel(),
                                "classes": regions.classes.ravel(),
                                "confidences": regions.confidences.ravel(),
                            },
                            regions.boxes.nbytes + regions.features.nbytes + 64,
                        )
                    for end in _ends(name):
                        several = NoRegionsError("a name that several pictures have")
                        known[end] = several if end in known else one
    if not found["read"]:
        raise ContractViolation(
            f"source {source.name}: pictures: the files have no picture; expected"
            f" {', '.join(SUFFIXES)}, or with region_dim {', '.join(sorted(_READERS))}."
        )
    return PictureIndex(known, {**found, "without_regions": dict(sorted(faults.items()))})


def bytes_of(snapshot: Snapshot, names: Collection[str]) -> dict[str, bytes]:
    """The files of a source's pictures by name, of these alone."""
    found: dict[str, bytes] = {}
    for state in snapshot.pictures:
        for content in contents(state):
            if content.name in names:
                found[content.name] = content.stream.read()
    return found


def _read(
    content: Content, wanted: Pictures, is_named: Callable[[str], bool] | None
) -> Iterator[tuple[str, Regions | NoRegionsError | None]]:
    """The pictures of a file by name: their regions, why there are none, None if no row names one.

    Files that are neither pictures nor, with `is_named`, region features have none.

    Raises:
        ContractViolation: The file cannot be read.
    """
    lowered = content.name.lower()
    if is_named is not None:
        plain = lowered.removesuffix(".gz").removesuffix(".bz2")
        if read := _READERS.get(PurePath(plain).suffix):
            yield from read(content, wanted, is_named)
    elif lowered.endswith(SUFFIXES):
        try:
            yield content.name, _regions(content, wanted.most_regions)
        except NoRegionsError as error:
            yield content.name, error
    elif lowered.endswith(_OTHERS):
        yield content.name, NoRegionsError("a picture that is neither PNG nor JPEG")


def _is_named(source: Source, snapshot: Snapshot) -> Callable[[str], bool]:
    """Whether a row names a picture: files of features have many more than a source's rows."""
    rows = (row for _, row in read_rows(source, snapshot) if isinstance(row, Row))
    names = {row.picture.removeprefix("./") for row in rows if row.picture}
    return lambda name: not names.isdisjoint(_ends(name))


def _regions(content: Content, most: int) -> Regions:
    data = bytearray()
    while len(data) <= MAX_PICTURE_BYTES and (piece := content.stream.read(1 << 20)):
        data += piece
    if len(data) > MAX_PICTURE_BYTES:
        raise NoRegionsError(f"a picture of more than {MAX_PICTURE_BYTES:,} bytes")
    return regions_of(bytes(data), most)


def _digest(regions: Regions) -> str:
    parts = regions.boxes, regions.features, regions.classes, regions.confidences
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:32]


def _ends(name: str) -> Collection[str]:
    """A name, and within its archive or folder the path and the ends of it at each slash."""
    parts = name.rpartition("!")[2].split("/")
    return dict.fromkeys([name, *("/".join(parts[start:]) for start in range(len(parts)))])


class PreparedRegions:
    """The regions of a prepared dataset's pictures, by name; memory-mapped.

    Args:
        folder: The dataset's.
    """

    def __init__(self, folder: Path):
        self._table = pyarrow.ipc.open_file(pyarrow.memory_map(str(folder / FILE))).read_all()
        names = self._table.column("picture").to_pylist()
        self._place = {name: place for place, name in enumerate(names)}

    def of(self, picture: str) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (n, 4) and features (n, E) of a picture, float32."""
        boxes, features = self._arrays(picture, "boxes", "features")
        boxes = boxes.reshape(-1, 4)
        return boxes, features.reshape(len(boxes), -1)

    def classes_of(self, picture: str) -> tuple[np.ndarray, np.ndarray]:
        """Classes (n, 2) int32 and confidences (n, 2) float32; n is 0 where none are told."""
        classes, confidences = self._arrays(picture, "classes", "confidences")
        return classes.reshape(-1, 2), confidences.reshape(-1, 2)

    def _arrays(self, picture: str, *columns: str) -> list[np.ndarray]:
        place = self._place[picture]
        return [np.array(self._table.column(name)[place].values) for name in columns]
