"""Near duplicates by MinHash, one text at a time, in memory that grows by signatures only.

Broder 1997 (signatures and bands); the shingle of five words and the threshold of 0.8 are those of
Lee et al. 2022, arXiv 2107.06499, section 4.2. Scripts without blanks take shingles of four
characters.

The package datasketch computes the same (its "affine32" scheme; a test compares the two), one
object a text: 370 µs a text of 100 words where these plain arrays take 130.
"""

from __future__ import annotations

import numpy as np

from corpora.identity import character_units, gram_hashes, is_unspaced, word_units

PERMUTATIONS = 128
WORD_SHINGLE = 5
CHARACTER_SHINGLE = 4
# 16 bands of 8: two texts of similarity 0.8 meet with probability 0.95, of 0.9 with 0.9999; what
# meets
# is then held against the threshold by its whole signature, so that more bands cost no precision.
BANDS = 16
# Shingles looked at in one piece: 8,192 x 128 numbers of 4 bytes are 4 MiB.
_PIECE = 8192
# Texts remembered under one piece of a signature.
_MET = 16


def permutations() -> tuple[np.ndarray, np.ndarray]:
    """Factors (odd: each map is a bijection modulo 2^32) and offsets, (128,) uint32 each."""
    rng = np.random.Generator(np.random.PCG64(20220714))
    drawn = rng.integers(0, 1 << 32, size=(2, PERMUTATIONS), dtype=np.uint32)
    return drawn[0] | np.uint32(1), drawn[1]


_FACTORS, _OFFSETS = permutations()


def shingles(
    normal: str, words: int = WORD_SHINGLE, characters: int = CHARACTER_SHINGLE
) -> np.ndarray:
    """Hashes of a normal form's shingles, each once, (n,) uint32; a short text is one."""
    if is_unspaced(normal):
        units, length = character_units(normal), characters
    else:
        units, length = word_units(normal), words
    length = min(length, max(len(units), 1))
    return np.unique(gram_hashes(units, length).astype(np.uint32))


def signature(hashes: np.ndarray) -> np.ndarray:
    """The least of the hashes under each permutation, (128,) uint32; all ones for no hashes."""
    least = np.full(PERMUTATIONS, 0xFFFFFFFF, dtype=np.uint32)
    for start in range(0, len(hashes), _PIECE):
        piece = hashes[start : start + _PIECE, None] * _FACTORS + _OFFSETS  # (n, 128), modulo 2^32
        np.minimum(least, piece.min(axis=0), out=least)
    return least


class NearDuplicates:
    """Texts met so far, asked whether a new one is nearly one of them.

    Args:
        threshold: Jaccard similarity of shingle sets from which two texts count as one, 0-1.
        word_shingle: Words in a shingle.
        character_shingle: Characters in a shingle, where words are not set apart.
        bands: Pieces that a signature is looked up by, a divisor of 128; more find less similar
            pairs.
    """

    def __init__(
        self,
        threshold: float = 0.8,
        word_shingle: int = WORD_SHINGLE,
        character_shingle: int = CHARACTER_SHINGLE,
        bands: int = BANDS,
    ):
        assert PERMUTATIONS % bands == 0
        self._threshold = threshold
        self._lengths = (word_shingle, character_shingle)
        width = 4 * PERMUTATIONS // bands
        self._ranges = [(start, start + width) for start in range(0, 4 * PERMUTATIONS, width)]
        # By band: that piece of the signature → numbers of the texts that have it.
        self._bands: list[dict[bytes, tuple[int, ...]]] = [{} for _ in self._ranges]
        self._signatures: list[bytes] = []

    def __len__(self) -> int:
        return len(self._signatures)

    def match_or_add(self, normal: str) -> int | None:
        """Number of the first text added that this one nearly repeats; else add it and say None.

        Args:
            normal: A text in normal form.
        """
        minima = signature(shingles(normal, *self._lengths))
        packed = minima.tobytes()
        keys = [packed[start:end] for start, end in self._ranges]
        candidates: set[int] = set()
        for band, key in zip(self._bands, keys, strict=True):
            candidates.update(band.get(key, ()))
        for number in sorted(candidates):
            other = np.frombuffer(self._signatures[number], dtype=np.uint32)
            if np.count_nonzero(other == minima) >= self._threshold * PERMUTATIONS:
                return number
        for band, key in zip(self._bands, keys, strict=True):
            met = band.get(key, ())
            if len(met) < _MET:  # texts from one template would otherwise make this quadratic
                band[key] = (*met, len(self._signatures))
        self._signatures.append(packed)
        return None
