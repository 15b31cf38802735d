"""Marks: strings of a text that are one token each, such as ``[HD]`` round an entity.

They look as no word does, so that a text has them only where they were meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_MARK = re.compile(r"\[[A-Z][A-Z0-9_]{0,30}\]")


def is_mark(name: str) -> bool:
    """Whether a string looks like a mark: capitals in brackets."""
    return _MARK.fullmatch(name) is not None


class Unmarked:
    """Texts with a blank in the place of each mark, iterable as often as the texts are."""

    def __init__(self, texts: Iterable[str], marks: Sequence[str]):
        self._texts = texts
        self._marks = re.compile("|".join(map(re.escape, marks)))

    def __iter__(self) -> Iterator[str]:
        return (self._marks.sub(" ", text) for text in self._texts)
