"""Texts in lists for one call each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def chunks(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    """The texts in order, in lists that end once they have so many characters.

    Args:
        texts: The texts.
        characters: Of a list, at least; the last one may have fewer.
    """
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= characters:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
