"""Contamination: which evaluation rows the text of a pre-training may have held.

`decontamination` removes such text before training. This measures what a network has read all the
same, at any length of n-gram, for rows whose answers should come from elsewhere.

Reference:
    Brown et al. 2020, arXiv 2005.14165, 4 and appendix C: an example is left out of the clean ones
    if it has 13 consecutive words in common with the training text, or, where it is shorter, all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from corpora.decontamination import CHARACTERS, WORDS
from corpora.identity import character_units, gram_hashes, is_unspaced, normal_form, word_units

CHARACTERS_A_WORD = CHARACTERS // WORDS  # in scripts without spaces


def contaminated(
    rows: Sequence[Sequence[str]], documents: Iterable[str], words: int = WORDS
) -> np.ndarray:
    """Which rows overlap with text that was trained on.

    Letter case, punctuation and spacing make no difference.

    Args:
        rows: The texts of each row; one that overlaps is enough.
        documents: The training text, read once.
        words: Consecutive words that count as an overlap, from 1; in scripts without spaces it is
            twice as many characters. Of a shorter text all must be found, in this order.

    Returns:
        (rows,) bool.
    """
    grams = _RowNgrams(rows, words)
    for document in documents:
        grams.read(document)
    return grams.found(len(rows))


class _RowNgrams:
    """The n-grams of rows, by kind of unit and length, and which of them were read."""

    def __init__(self, rows: Sequence[Sequence[str]], words: int):
        hashes: defaultdict[tuple[bool, int], list[np.ndarray]] = defaultdict(list)
        owners: defaultdict[tuple[bool, int], list[np.ndarray]] = defaultdict(list)
        for row, texts in enumerate(rows):
            for text in texts:
                normal = normal_form(text)
                unspaced = is_unspaced(normal)
                units = character_units(normal) if unspaced else word_units(normal)
                if not len(units):
                    continue
                length = min(words * (CHARACTERS_A_WORD if unspaced else 1), len(units))
                found = gram_hashes(units, length)
                hashes[unspaced, length].append(found)
                owners[unspaced, length].append(np.full(len(found), row))
        self._known: dict[tuple[bool, int], np.ndarray] = {}
        self._place: dict[tuple[bool, int], np.ndarray] = {}
        for kind, parts in hashes.items():
            self._known[kind], self._place[kind] = np.unique(
                np.concatenate(parts), return_inverse=True
            )
        self._owners = {kind: np.concatenate(parts) for kind, parts in owners.items()}
        self._read = {kind: np.zeros(len(known), bool) for kind, known in self._known.items()}

    def read(self, document: str) -> None:
        """Note the n-grams of a document."""
        normal = normal_form(document)
        words = word_units(normal)
        characters = None if normal.isascii() else character_units(normal)
        for (unspaced, length), known in self._known.items():
            units = characters if unspaced else words
            if units is None:
                continue
            hashes = gram_hashes(units, length)
            places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            self._read[unspaced, length][places[known[places] == hashes]] = True

    def found(self, count: int) -> np.ndarray:
        """(rows,) bool: whether an n-gram of the row was read."""
        rows = np.zeros(count, bool)
        for kind, owners in self._owners.items():
            rows[owners[self._read[kind][self._place[kind]]]] = True
        return rows
