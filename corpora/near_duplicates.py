"""Near duplicates by MinHash, one text at a time; signatures and their bands are on disk.

Broder 1997 (signatures and bands). The shingle of five words and the threshold of 0.8 are those of
Lee et al. 2022, arXiv 2107.06499, section 4.2. In scripts without spaces a shingle is four
characters.

The package datasketch computes the same signatures (its "affine32" scheme; a test compares the
two), but takes 370 µs per text of 100 words; these plain arrays take 130.
"""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

import numpy as np

from corpora.identity import character_units, gram_hashes, is_unspaced, word_units
from corpora.scratch import database_in_memory

PERMUTATIONS = 128
WORD_SHINGLE = 5
CHARACTER_SHINGLE = 4
# 16 bands of 8: two texts of similarity 0.8 share a band with probability 0.95, of 0.9 with 0.9999.
# Candidates are then compared by their whole signatures, so more bands cost no precision.
BANDS = 16
# Shingles hashed at a time: 8,192 x 128 numbers of 4 bytes are 4 MiB.
_PIECE = 8192
# Most texts stored under one band of a signature.
_SEEN = 16


def permutations() -> tuple[np.ndarray, np.ndarray]:
    """Factors (odd: each map is a bijection modulo 2^32) and offsets, (128,) uint32 each."""
    rng = np.random.Generator(np.random.PCG64(20220714))
    drawn = rng.integers(0, 1 << 32, size=(2, PERMUTATIONS), dtype=np.uint32)
    return drawn[0] | np.uint32(1), drawn[1]


_FACTORS, _OFFSETS = permutations()


def shingles(
    normal: str, words: int = WORD_SHINGLE, characters: int = CHARACTER_SHINGLE
) -> np.ndarray:
    """Distinct hashes of a normal form's shingles, (n,) uint32; a short text is one shingle."""
    if is_unspaced(normal):
        units, length = character_units(normal), characters
    else:
        units, length = word_units(normal), words
    length = min(length, max(len(units), 1))
    return np.unique(gram_hashes(units, length).astype(np.uint32))


def signature(hashes: np.ndarray) -> np.ndarray:
    """The minimum of the hashes under each permutation, (128,) uint32; all ones for no hashes."""
    least = np.full(PERMUTATIONS, 0xFFFFFFFF, dtype=np.uint32)
    for start in range(0, len(hashes), _PIECE):
        piece = hashes[start : start + _PIECE, None] * _FACTORS + _OFFSETS  # (n, 128), modulo 2^32
        np.minimum(least, piece.min(axis=0), out=least)
    return least


class ShingleCounts:
    """In how many texts each shingle is, in 16 MiB whatever their number.

    Shingles whose hashes end alike are counted as one, so that a count may be too high, by about
    one in 40,000 of the texts where texts have 100 shingles.
    """

    _ENDS = np.uint32((1 << 22) - 1)

    def __init__(self):
        self._counts = np.zeros(1 << 22, dtype=np.uint32)

    def add(self, hashes: np.ndarray) -> None:
        """Count the distinct shingles of a text, (n,) uint32."""
        self._counts[np.unique(hashes & self._ENDS)] += 1

    def rare(self, hashes: np.ndarray, most: int) -> np.ndarray:
        """The shingles that at most so many texts have; all, if there is none."""
        few = hashes[self._counts[hashes & self._ENDS] <= most]
        return few if len(few) else hashes


class NearDuplicates:
    """An index of texts that finds near duplicates of a new one.

    Args:
        threshold: Jaccard similarity of shingle sets from which two texts are duplicates, 0-1.
        word_shingle: Words per shingle.
        character_shingle: Characters per shingle in scripts without spaces.
        bands: Bands of a signature, a divisor of 128; more bands find less similar pairs.
        database: Where signatures are stored; None for memory.
        counts: In how many texts each shingle is; None if all count.
        most: With `counts`: texts that may have a shingle. Those of more are left out.
    """

    def __init__(
        self,
        threshold: float = 0.8,
        word_shingle: int = WORD_SHINGLE,
        character_shingle: int = CHARACTER_SHINGLE,
        bands: int = BANDS,
        database: sqlite3.Connection | None = None,
        counts: ShingleCounts | None = None,
        most: int = 0,
    ):
        assert PERMUTATIONS % bands == 0
        self._threshold = threshold
        self._lengths = (word_shingle, character_shingle)
        self._counts, self._most = counts, most
        width = 4 * PERMUTATIONS // bands
        self._ranges = [(start, start + width) for start in range(0, 4 * PERMUTATIONS, width)]
        self._database = database or database_in_memory()
        self._count = 0
        self._database.execute("CREATE TABLE signatures (number INTEGER PRIMARY KEY, minima BLOB)")
        # The hash of a band → the numbers of the texts that have it.
        self._database.execute(
            "CREATE TABLE bands (piece INTEGER, number INTEGER, PRIMARY KEY (piece, number))"
            " WITHOUT ROWID"
        )
        self._find = f"SELECT piece, number FROM bands WHERE piece IN ({', '.join('?' * bands)})"

    def __len__(self) -> int:
        return self._count

    def match_or_add(self, normal: str) -> int | None:
        """The number of the first text that this one nearly duplicates; else add it, return None.

        Args:
            normal: A text in normal form. One without any word duplicates none.
        """
        found, new = self._compared(normal, only_first=True)
        if found:
            return found[0]
        self._add(new)
        return None

    def matches_and_add(self, normal: str) -> list[int]:
        """The numbers of all earlier texts that this one nearly duplicates; it is added, too.

        Likeness is not passed on: a text like two that are unlike each other is known by both.

        Args:
            normal: A text in normal form. One without any word duplicates none.
        """
        found, new = self._compared(normal)
        self._add(new)
        return found

    def _compared(
        self, normal: str, only_first: bool = False
    ) -> tuple[list[int], tuple[bytes, list[int]] | None]:
        """The texts that one nearly duplicates, and its signature and bands to store.

        Nothing is to be stored of a text without a word, and of one that is there already: what it
        is like was found with that.
        """
        if not normal.strip():
            return [], None
        hashes = shingles(normal, *self._lengths)
        if self._counts is not None:
            hashes = self._counts.rare(hashes, self._most)
        minima = signature(hashes)
        packed = minima.tobytes()
        pieces = [_piece(start, packed[start:end]) for start, end in self._ranges]
        met = dict.fromkeys(pieces, 0)
        candidates: set[int] = set()
        for piece, number in self._database.execute(self._find, pieces):
            met[piece] += 1
            candidates.add(number)
        found: list[int] = []
        for number in sorted(candidates):
            (known,) = self._database.execute(
                "SELECT minima FROM signatures WHERE number = ?", (number,)
            ).fetchone()
            other = np.frombuffer(known, dtype=np.uint32)
            if np.count_nonzero(other == minima) >= self._threshold * PERMUTATIONS:
                found.append(number)
                if only_first or known == packed:
                    return found, None
        # Otherwise texts made from one template would make this quadratic.
        return found, (packed, [piece for piece, texts in met.items() if texts < _SEEN])

    def _add(self, new: tuple[bytes, list[int]] | None) -> None:
        """Count a text, and store what `_compared` says of it."""
        if new is not None:
            packed, pieces = new
            rows = [(piece, self._count) for piece in pieces]
            self._database.executemany("INSERT INTO bands VALUES (?, ?)", rows)
            self._database.execute("INSERT INTO signatures VALUES (?, ?)", (self._count, packed))
        self._count += 1


def _piece(start: int, piece: bytes) -> int:
    """64-bit hash of a band and its place; collisions are resolved by the whole signature."""
    hashed = blake2b(piece, digest_size=8, salt=start.to_bytes(8, "little"))
    return int.from_bytes(hashed.digest(), "little", signed=True)
