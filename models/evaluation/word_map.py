"""Chosen words of a table of vectors: their nearest neighbours, and their places in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.evaluation.plane import plane
from models.vectors.lookup import WordTable, nearest, unit

NEIGHBOURS = 5


@dataclass(frozen=True)
class WordMap:
    """Chosen words.

    Attributes:
        words: Those that have a vector.
        points: (words, 2) principal components of their vectors of length 1.
        nearest: By word, the words with the highest cosines, and these.
        unknown: Words without a vector.
    """

    words: tuple[str, ...]
    points: np.ndarray
    nearest: dict[str, list[tuple[str, float]]]
    unknown: tuple[str, ...]


def word_map(words: Sequence[str], table: WordTable) -> WordMap:
    """Neighbours among all words, and a map of the chosen ones.

    Args:
        words: Looked up as `models.vectors.lookup` does.
        table: All words; those of the vocabulary are neighbours.
    """
    found = {word: row for word in words if (row := table.row(word)) is not None}
    near = {word: nearest(table, [word], NEIGHBOURS)[0] for word in found}
    chosen = unit(table.vectors[list(found.values())])
    points = plane(chosen) if len(found) > 1 else np.zeros((len(found), 2))
    return WordMap(tuple(found), points, near, tuple(w for w in words if w not in found))
