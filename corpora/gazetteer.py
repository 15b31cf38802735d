"""A gazetteer: finds the names of phrases and entities in text.

One pass over a text finds all names, however many there are. A served model that reads entities has
a copy of this file, which therefore imports nothing else of this project.

Reference: Aho and Corasick 1975, Communications of the ACM 18(6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, order=True)
class Match:
    """A name in a text: ``text[start:end]``, and its kind."""

    start: int
    end: int
    kind: str


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


def whole(
    basic: np.ndarray, starts: np.ndarray, ends: np.ndarray, matches: Iterable[Match]
) -> list[Match]:
    """Names that begin and end where basic units do, by the numbers of their tokens.

    Args:
        basic: (n,) bool: tokens that start a word by whitespace, or are a CJK character.
        starts: (n,) offset of each token in the text, ascending.
        ends: (n,) offset of its end.
        matches: Names in the text.
    """
    last = np.append(basic[1:], True)  # tokens that end a basic unit
    first_at = {int(place): i for i, place in enumerate(starts) if basic[i]}
    behind_at = {int(place): i + 1 for i, place in enumerate(ends) if last[i]}
    return [
        Match(first_at[match.start], behind_at[match.end], match.kind)
        for match in matches
        if match.start in first_at and match.end in behind_at
    ]
