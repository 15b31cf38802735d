"""The pictures that the rows of a dataset name: read once, their regions kept in a file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from corpora.archives import Content, contents
from corpora.arrow_files import TableWriter
from corpora.limits import MAX_PICTURE_BYTES
from corpora.regions import SUFFIXES, NoRegionsError, Regions, regions_of
from corpora.snapshot import Snapshot
from data_contracts.sources import Source

FILE = "regions.arrow"
REGIONS = pyarrow.schema(
    [
        pyarrow.field("picture", pyarrow.string(), nullable=False),
        # (n, 4) and (n, E), row by row.
        pyarrow.field("boxes", pyarrow.list_(pyarrow.float32()), nullable=False),
        pyarrow.field("features", pyarrow.list_(pyarrow.float32()), nullable=False),
    ]
)


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
class Pictures:
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


def read_pictures(source: Source, snapshot: Snapshot, folder: Path) -> Pictures | None:
    """Write the regions of a source's pictures to a folder; None for a source without pictures.

    Raises:
        ContractViolation: A file cannot be read, or an archive is damaged or hostile.
    """
    if source.pictures is None:
        return None
    known: dict[str, KnownPicture | NoRegionsError] = {}
    faults, found = Counter[str](), Counter[str]()
    with TableWriter(folder / FILE, REGIONS) as writer:
        for state in snapshot.pictures:
            for content in contents(state):
                if not content.name.lower().endswith(SUFFIXES):
                    continue
                found["read"] += 1
                one: KnownPicture | NoRegionsError
                try:
                    regions = _regions(content, source.pictures.most_regions)
                except NoRegionsError as error:
                    one = error
                    faults[error.reason] += 1
                else:
                    found["regions"] += len(regions.boxes)
                    found["with_more_regions"] += regions.found > len(regions.boxes)
                    one = KnownPicture(content.name, _digest(regions))
                    writer.add(
                        {
                            "picture": content.name,
                            "boxes": regions.boxes.ravel(),
                            "features": regions.features.ravel(),
                        },
                        regions.boxes.nbytes + regions.features.nbytes + 64,
                    )
                for end in _ends(content.name):
                    several = NoRegionsError("a name that several pictures have")
                    known[end] = several if end in known else one
    return Pictures(known, {**found, "without_regions": dict(sorted(faults.items()))})


def bytes_of(snapshot: Snapshot, names: Collection[str]) -> dict[str, bytes]:
    """The files of a source's pictures by name, of these alone."""
    found: dict[str, bytes] = {}
    for state in snapshot.pictures:
        for content in contents(state):
            if content.name in names:
                found[content.name] = content.stream.read()
    return found


def _regions(content: Content, most: int) -> Regions:
    data = bytearray()
    while len(data) <= MAX_PICTURE_BYTES and (piece := content.stream.read(1 << 20)):
        data += piece
    if len(data) > MAX_PICTURE_BYTES:
        raise NoRegionsError(f"a picture of more than {MAX_PICTURE_BYTES:,} bytes")
    return regions_of(bytes(data), most)


def _digest(regions: Regions) -> str:
    return hashlib.sha256(regions.boxes.tobytes() + regions.features.tobytes()).hexdigest()[:32]


def _ends(name: str) -> Iterator[str]:
    """A path within its archive or folder, and the ends of it at each slash."""
    parts = name.rpartition("!")[2].split("/")
    for start in range(len(parts)):
        yield "/".join(parts[start:])


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
        place = self._place[picture]
        boxes, features = (
            np.array(self._table.column(name)[place].values) for name in ("boxes", "features")
        )
        boxes = boxes.reshape(-1, 4)
        return boxes, features.reshape(len(boxes), -1)
