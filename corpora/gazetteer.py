"""A gazetteer: finds the names of phrases and entities in text.

A file has one name per line: ``name<TAB>phrase`` or ``name<TAB>entity``. One pass over a text finds
all names, however many there are.

Reference: Aho and Corasick 1975, Communications of the ACM 18(6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fourstage.errors import ContractViolation
from fourstage.settings import REPOSITORY, data_folders

KINDS = ("phrase", "entity")


@dataclass(frozen=True, order=True)
class Match:
    """A name in a text: ``text[start:end]``, and its kind."""

    start: int
    end: int
    kind: str


def find_gazetteer(file: str, folders: Sequence[Path] = (), key: str = "gazetteer") -> Path:
    """The path of a gazetteer.

    Args:
        file: The path in the recipe: absolute, or relative to one of the search folders.
        folders: Project folders, searched before those of ``FOURSTAGE_DATA`` and Fourstage's own.
        key: The recipe's key below ``units``.

    Raises:
        ContractViolation: It does not exist; the message lists the folders searched.
    """
    places = [*folders, *data_folders(), REPOSITORY]
    for place in places:
        path = place / Path(file).expanduser()
        if path.is_file():
            return path
    looked_in = ", ".join(str(place) for place in places)
    raise ContractViolation(f"units.{key}: no file {file!r} in {looked_in}")


def read_gazetteer(path: Path) -> list[tuple[str, str]]:
    """(name, kind) of each line; empty lines are skipped, and so is a byte order mark.

    Raises:
        ContractViolation: A line has another form, or the file is not UTF-8.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise ContractViolation(
            f"{path}:{number}: expected UTF-8, got the byte 0x{error.object[error.start]:02x}; "
            "save the file as UTF-8"
        ) from error
    names: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        name, tab, kind = line.rstrip("\r").partition("\t")
        if not tab or kind not in KINDS or not name.strip():
            raise ContractViolation(
                f"{path}:{number}: expected name<TAB>kind with a kind of {' or '.join(KINDS)}; "
                "correct the line"
            )
        names.append((name.strip(), kind))
    if not names:
        raise ContractViolation(f"{path}: expected one name per line, got an empty file")
    return names


class Gazetteer:
    """Finds names in texts; both must be normalised the same way.

    Args:
        names: (name, kind); a name may be of both kinds.
    """

    def __init__(self, names: Iterable[tuple[str, str]]):
        from ahocorasick_rs import AhoCorasick

        self._names = sorted({(name, kind) for name, kind in names if name})
        self._automaton = AhoCorasick([name for name, _ in self._names])

    def matches(self, text: str) -> Iterator[Match]:
        """Every occurrence of every name, including overlapping ones, ordered by their ends."""
        for i, start, end in self._automaton.find_matches_as_indexes(text, overlapping=True):
            yield Match(start, end, self._names[i][1])


def longest(matches: Iterable[Match]) -> list[Match]:
    """Of overlapping matches the leftmost, and of those the longest."""
    kept: list[Match] = []
    for match in sorted(matches, key=lambda match: (match.start, -match.end)):
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
    return kept
