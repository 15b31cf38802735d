"""Finds the files of a source (paths, folders, globs, addresses) in a fixed order."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from data_contracts.records import Split
from data_contracts.sources import BUILT_IN, Source, has_half_character
from fourstage.errors import ContractViolation
from fourstage.settings import data_folders, home

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".zip")
COMPRESSED = (".gz", ".bz2")
# Only these are read at run time; anything else that fsspec can reach is for `fourstage fetch`.
LOCAL_PROTOCOLS = ("file", "memory")

EMBEDDED = "smoke_"  # how the names of built-in sources begin whose files stand beside them

_NO_FILE = "expected a file, got a device, pipe or socket"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True)
class FoundFile:
    """A file of a source.

    Attributes:
        split: The split it is listed under; None if Fourstage splits the data.
        path: An absolute path, or an address that fsspec can open.
        name: Its name in ids and locations: relative, the same on every machine.
        members: Pattern of the archive members to read; empty for all.
    """

    split: Split | None
    path: str
    name: str
    members: str = ""


def cache_folder(source: Source) -> Path:
    """The folder in which `fourstage fetch` stores the files of a source."""
    return home() / "data" / source.name


def search_places(source: Source, folders: Sequence[Path] = ()) -> list[Path]:
    """The folders in which a source's relative files are searched, in order."""
    project = [source.project] if source.project else []
    embedded = [BUILT_IN] if not project and source.name.startswith(EMBEDDED) else []
    places = [*embedded, *project, *folders, *data_folders(), cache_folder(source)]
    return list(dict.fromkeys(places))


def find_files(source: Source, folders: Sequence[Path] = ()) -> list[FoundFile]:
    """Every file of a source, splits in order, sorted by name within a pattern.

    Args:
        source: The source.
        folders: Further folders for relative patterns, after the source's own project folder.

    Raises:
        ContractViolation: A pattern matches nothing, a link is dangling, or an address is remote.
    """
    return _found(source, source.patterns, folders)


def find_joined(source: Source, folders: Sequence[Path] = ()) -> list[list[FoundFile]]:
    """The same for each table that the source joins."""
    return [_found(source, join.patterns, folders) for join in source.join]


def find_pictures(source: Source, folders: Sequence[Path] = ()) -> list[FoundFile]:
    """The same for the pictures that the source's rows name; none if they name none."""
    listed: dict[Split | None, Sequence[str]] = {}
    if source.pictures:
        listed[None] = source.pictures.files
    return _found(source, listed, folders)


def _found(
    source: Source, listed: Mapping[Split | None, Sequence[str]], folders: Sequence[Path]
) -> list[FoundFile]:
    places = search_places(source, folders)
    found: list[FoundFile] = []
    for split, patterns in listed.items():
        seen: set[tuple[str, str]] = set()
        for pattern in patterns:
            for file in _matches(source, pattern, places, split):
                if has_half_character(file.path):
                    raise ContractViolation(
                        f"source {source.name}: {file.path!r}: the name is not UTF-8; rename it."
                    )
                if (file.path, file.members) not in seen:
                    seen.add((file.path, file.members))
                    found.append(file)
    return _with_distinct_names(found)


def _matches(
    source: Source, pattern: str, places: list[Path], split: Split | None
) -> Iterator[FoundFile]:
    members, expanded = "", os.path.expanduser(pattern)
    if "!" in pattern and not any((place / expanded).is_file() for place in places):
        pattern, _, members = pattern.partition("!")
        expanded = os.path.expanduser(pattern)
    address = _ADDRESS.match(pattern)
    if address:
        yield from _addressed(source, pattern, address[1], split, members)
        return
    if os.path.isabs(expanded):
        candidates = [(Path(expanded), None)]
    else:
        candidates = [(place / expanded, place) for place in places]
    for path, place in candidates:
        files = list(_local(path))
        if files:
            root = place or _fixed_part(path)
            for file in files:
                name = os.path.relpath(file, root).replace(os.sep, "/")
                yield FoundFile(split, str(file), name, members)
            return
    _nothing(source, pattern, [path for path, _ in candidates], places)


def _local(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from _of_folder(path)
    elif has_magic(str(path)):
        root = _fixed_part(path)
        relative = os.path.relpath(path, root)
        try:
            matches = sorted(root.glob(relative))
        except (ValueError, NotImplementedError, IndexError):
            return
        wants_hidden = any(part.startswith(".") for part in Path(relative).parts)
        for match in matches:
            parts = match.relative_to(root).parts
            if not wants_hidden and any(part.startswith(".") for part in parts):
                continue
            if match.is_file():
                yield match
            elif match.is_dir() and "**" not in relative:
                yield from _of_folder(match)
            elif match.is_symlink():
                raise ContractViolation(_dangling(match))


def _of_folder(folder: Path) -> Iterator[Path]:
    """Every file below a folder that is not hidden; links to folders are not followed."""
    for root, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(root, name)
            if name.startswith("."):
                continue
            if not path.exists():
                raise ContractViolation(_dangling(path))
            if path.is_file():
                yield path


def _unreadable(error: OSError) -> None:
    """Refuse a folder that cannot be listed; its files would be left out without a word."""
    raise ContractViolation(
        f"{error.filename}: the folder cannot be read ({error.strerror}); make it readable, or "
        "name the files to read."
    ) from error


def _fixed_part(path: Path) -> Path:
    """The folder above the first part with a wildcard; for a plain path, its parent."""
    for parent in reversed(path.parents):
        if has_magic(str(parent)) and not parent.exists():
            return parent.parent
    return path.parent


def _dangling(path: Path) -> str:
    leads = "does not exist"
    try:
        path.stat()
    except OSError as error:
        leads = "leads back to it" if error.errno == errno.ELOOP else leads
    return (
        f"{path}: expected a file, got a link to {os.readlink(path)}, which {leads}; "
        "restore the target or take the link away."
    )


def _nothing(source: Source, pattern: str, tried: list[Path], places: list[Path]) -> None:
    for path in tried:
        if path.is_symlink():
            raise ContractViolation(_dangling(path))
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ContractViolation(f"{path}: {_NO_FILE}.")
    if len(tried) == 1:
        looked = str(_fixed_part(tried[0]))
    else:
        looked = ", ".join(str(place) for place in places)
    if len(tried) == 1 and tried[0].is_dir():
        raise ContractViolation(f"source {source.name}: the folder {pattern!r} has no files.")
    kind = "pattern" if has_magic(pattern) else "file"
    hint = "put the file there or correct 'files'"
    if source.origin and source.fetch != "none":
        hint = (
            f"run `fourstage fetch {source.name}`, or set FOURSTAGE_DATA to the folder it is below"
        )
    elif source.origin:
        hint = "set FOURSTAGE_DATA to the folder it is below"
    raise ContractViolation(
        f"source {source.name}: the {kind} {pattern!r} matches nothing; looked in {looked}; {hint}."
    )


def _addressed(
    source: Source, pattern: str, protocol: str, split: Split | None, members: str
) -> Iterator[FoundFile]:
    if protocol not in LOCAL_PROTOCOLS:
        raise ContractViolation(
            f"source {source.name}: {protocol}:// is remote and a run never fetches; give the "
            f"address as 'origin' with its sha256 and run `fourstage fetch {source.name}`."
        )
    import fsspec

    filesystem, path = fsspec.url_to_fs(pattern)
    if has_magic(path):
        paths = sorted(name for name in filesystem.glob(path) if filesystem.isfile(name))
    elif filesystem.isdir(path):
        paths = sorted(filesystem.find(path))
    else:
        paths = [path] if filesystem.exists(path) else []
    for found in paths:
        if not filesystem.isfile(found):
            raise ContractViolation(f"{found}: {_NO_FILE}, or a link to none.")
    if not paths:
        raise ContractViolation(
            f"source {source.name}: {pattern!r} matches nothing in the {protocol} file system."
        )
    for path in paths:
        name = path.rsplit("/", 1)[-1]
        full = str(filesystem.unstrip_protocol(path))
        yield FoundFile(split, path if protocol == "file" else full, name, members)


def _with_distinct_names(found: list[FoundFile]) -> list[FoundFile]:
    """Number files of the same name (from two absolute folders), so that ids stay distinct.

    They are counted over all splits: a record that cannot be read is known by its location alone.
    The number stands before the suffix, which tells the format.
    """
    times: dict[str, int] = {}
    distinct = []
    for file in found:
        key = f"{file.name}!{file.members}"
        times[key] = times.get(key, 0) + 1
        name = file.name
        if times[key] > 1:
            folder, slash, last = name.rpartition("/")
            stem, dot, suffix = last.partition(".")
            name = f"{folder}{slash}{stem}~{times[key]}{dot}{suffix}"
        distinct.append(FoundFile(file.split, file.path, name, file.members))
    return distinct
