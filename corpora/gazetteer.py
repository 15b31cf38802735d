"""A gazetteer: finds the names of phrases and entities in text.

A file has one name per line: ``name<TAB>phrase`` or ``name<TAB>entity``. One pass over a text finds
all names, however many there are.

Reference: Aho and Corasick 1975, Communications of the ACM 18(6).
"""

from __future__ import annotations

from collections import deque
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


def find_gazetteer(file: str, folders: Sequence[Path] = ()) -> Path:
    """The path of a gazetteer.

    Args:
        file: The path in the recipe: absolute, or relative to one of the search folders.
        folders: Project folders, searched before those of ``FOURSTAGE_DATA`` and Fourstage's own.

    Raises:
        ContractViolation: It does not exist; the message lists the folders searched.
    """
    places = [*folders, *data_folders(), REPOSITORY]
    for place in places:
        path = place / Path(file).expanduser()
        if path.is_file():
            return path
    looked_in = ", ".join(str(place) for place in places)
    raise ContractViolation(f"units.gazetteer: no file {file!r} in {looked_in}")


def read_gazetteer(path: Path) -> list[tuple[str, str]]:
    """(name, kind) of each line; empty lines are skipped.

    Raises:
        ContractViolation: A line has another form, or the file is not UTF-8.
    """
    try:
        text = path.read_text("utf-8")
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
        self._next: list[dict[str, int]] = [{}]
        self._ends: list[list[tuple[int, str]]] = [
            []
        ]  # (length, kind) of the names that end at each state
        for name, kind in sorted(set(names)):
            if name:
                self._add(name, kind)
        self._link()

    def matches(self, text: str) -> Iterator[Match]:
        """Every occurrence of every name, including overlapping ones, ordered by their ends."""
        state = 0
        following, failure, ends = self._next, self._failure, self._ends
        for i, character in enumerate(text, start=1):
            while state and character not in following[state]:
                state = failure[state]
            state = following[state].get(character, 0)
            for length, kind in ends[state]:
                yield Match(i - length, i, kind)

    def _add(self, name: str, kind: str) -> None:
        state = 0
        for character in name:
            if character not in self._next[state]:
                self._next[state][character] = len(self._next)
                self._next.append({})
                self._ends.append([])
            state = self._next[state][character]
        self._ends[state].append((len(name), kind))

    def _link(self) -> None:
        """Link each prefix to its longest suffix that is also a prefix, in order of length."""
        self._failure = [0] * len(self._next)
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for character, after in self._next[state].items():
                back = self._failure[state]
                while back and character not in self._next[back]:
                    back = self._failure[back]
                self._failure[after] = self._next[back].get(character, 0)
                # Names that end at the suffix end here, too; its list is complete: it is shorter.
                self._ends[after] = self._ends[after] + self._ends[self._failure[after]]
                waiting.append(after)


def longest(matches: Iterable[Match]) -> list[Match]:
    """Of overlapping matches the leftmost, and of those the longest."""
    kept: list[Match] = []
    for match in sorted(matches, key=lambda match: (match.start, -match.end)):
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
    return kept
