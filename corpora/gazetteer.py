"""Names of phrases and entities, found in text with their places.

A file has one name a line: ``name<TAB>phrase`` or ``name<TAB>entity``. All names are looked for in
one pass over a text, however many there are.

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
    """A name in a text: ``text[start:end]``, and what it names."""

    start: int
    end: int
    kind: str


def find_gazetteer(file: str, folders: Sequence[Path] = ()) -> Path:
    """Where a gazetteer lies.

    Args:
        file: As a recipe has it: absolute, or relative to one of the places.
        folders: Project folders; after them come those of ``FOURSTAGE_DATA`` and what comes with
            Fourstage.

    Raises:
        ContractViolation: There is none, with the places looked in.
    """
    places = [*folders, *data_folders(), REPOSITORY]
    for place in places:
        path = place / Path(file).expanduser()
        if path.is_file():
            return path
    looked_in = ", ".join(str(place) for place in places)
    raise ContractViolation(f"units.gazetteer: no file {file!r} in {looked_in}")


def read_gazetteer(path: Path) -> list[tuple[str, str]]:
    """(name, kind) of each line; empty lines are passed over.

    Raises:
        ContractViolation: A line is not of that form, with its number, or the file is not UTF-8.
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
        raise ContractViolation(f"{path}: expected one name a line, got an empty file")
    return names


class Gazetteer:
    """Finds names in texts; both must be normalised the same way.

    Args:
        names: (name, kind); a name may be of both kinds.
    """

    def __init__(self, names: Iterable[tuple[str, str]]):
        self._next: list[dict[str, int]] = [{}]
        self._ends: list[list[tuple[int, str]]] = [[]]  # (length, kind) of names that end here
        for name, kind in sorted(set(names)):
            if name:
                self._add(name, kind)
        self._link()

    def matches(self, text: str) -> Iterator[Match]:
        """Every occurrence of every name, overlapping ones too, in the order of their ends."""
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
        """From each prefix to its longest suffix that is a prefix too, in order of length."""
        self._failure = [0] * len(self._next)
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for character, after in self._next[state].items():
                back = self._failure[state]
                while back and character not in self._next[back]:
                    back = self._failure[back]
                self._failure[after] = self._next[back].get(character, 0)
                # What ends at the suffix ends here too; it is complete, being shorter.
                self._ends[after] = self._ends[after] + self._ends[self._failure[after]]
                waiting.append(after)


def longest(matches: Iterable[Match]) -> list[Match]:
    """Of matches that overlap the leftmost, and of those the longest."""
    kept: list[Match] = []
    for match in sorted(matches, key=lambda match: (match.start, -match.end)):
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
    return kept
