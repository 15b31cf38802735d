"""The state of a source's files at the start of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from corpora.file_state import FileState, check_unchanged
from corpora.files import FoundFile, find_files, find_joined, find_pictures
from data_contracts.sources import Source
from fourstage.digests import DigestCache, digest
from fourstage.errors import ContractViolation
from fourstage.settings import home


@dataclass(frozen=True)
class Snapshot:
    """The files of a source, and one digest of them all.

    Attributes:
        source_name: Name of the source.
        files: Splits in order, each sorted.
        joined: The files of each table that the source joins.
        digest: Of splits, names and contents; independent of folders, times and machines.
        pictures: The files of pictures that rows name.
    """

    source_name: str
    files: tuple[FileState, ...]
    digest: str
    joined: tuple[tuple[FileState, ...], ...] = ()
    pictures: tuple[FileState, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in (*self.all_files, *self.pictures))

    @property
    def all_files(self) -> tuple[FileState, ...]:
        """Its files and those of the tables it joins."""
        return tuple(file for files in (self.files, *self.joined) for file in files)


def take_snapshot(source: Source, folders: Sequence[Path] = ()) -> Snapshot:
    """Find the files of a source and digest them (digests of unchanged files are cached).

    Args:
        source: The source.
        folders: Further folders for relative files, after the source's own project folder and
            before those of ``FOURSTAGE_DATA`` and the fetch cache.

    Raises:
        ContractViolation: A file is missing, cannot be read, or changes in the meantime.
        RecipeError: The format is unknown.
    """
    from corpora.readers import format_of

    if source.packages:
        from corpora.readers.python_docs import package_files

        found = package_files(source)
    else:
        found = find_files(source, folders)
        for file in found:
            format_of(source, file)
    digests = _remembered(home() / "file-digests.jsonl")
    files = tuple(_state(file, digests) for file in found)
    tables = find_joined(source, folders)
    joined = tuple(tuple(_state(file, digests) for file in table) for table in tables)
    pictures = tuple(_state(file, digests) for file in find_pictures(source, folders))
    content: list[Any] = [source.name, _content(files), *map(_content, joined)]
    if source.pictures:
        content.append({"pictures": _content(pictures)})
    return Snapshot(source.name, files, digest(content), joined, pictures)


def _content(files: Sequence[FileState]) -> list[list[Any]]:
    return [[file.split, file.name, file.members, file.size, file.sha256] for file in files]


@cache
def _remembered(path: Path) -> DigestCache:
    """One cache for all sources of a recipe, so that 300 of them read it once."""
    return DigestCache(path)


def _state(file: FoundFile, digests: DigestCache) -> FileState:
    if "://" in file.path:
        return _addressed_state(file)
    path = Path(file.path)
    try:
        before = path.stat()
        sha256 = digests.of(path)
        after = path.stat()
    except OSError as error:
        raise ContractViolation(f"{path}: cannot be read ({error.strerror}).") from error
    state = FileState(
        file.split,
        file.path,
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
        sha256,
        file.name,
        file.members,
    )
    check_unchanged(state, after)
    return state


def _addressed_state(file: FoundFile) -> FileState:
    import fsspec

    state = hashlib.sha256()
    size = 0
    try:
        with cast(BinaryIO, fsspec.open(file.path, "rb")) as stream:
            while chunk := stream.read(1 << 20):
                state.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise ContractViolation(f"{file.path}: cannot be read ({error}).") from error
    return FileState(file.split, file.path, size, 0, 0, state.hexdigest(), file.name, file.members)
