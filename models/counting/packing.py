"""N-grams as keys that sort token by token, the oldest token first.

An n-gram is one unsigned number if its tokens fit in 64 bits (order 4 of 65,536 tokens, order 3 of
two million), else a row of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_WIDEST = 64  # bits of a number


@dataclass(frozen=True)
class Packing:
    """How the n-grams of a model become keys.

    Args:
        order: Tokens in its longest n-grams, from 1.
        vocabulary_size: Number of token ids.
    """

    order: int
    vocabulary_size: int

    @property
    def _bits(self) -> int:
        return max(1, (self.vocabulary_size - 1).bit_length())

    @property
    def _bytes(self) -> int:
        return -(-self._bits // 8)

    @property
    def in_numbers(self) -> bool:
        """Whether a key is a number."""
        return self.order * self._bits <= _WIDEST

    def ngrams(self, tokens: np.ndarray) -> np.ndarray:
        """The keys of the longest n-grams of running text.

        Args:
            tokens: (L,) token ids.

        Returns:
            (L - order + 1,) keys; the first one ends at token ``order - 1``.
        """
        count = max(0, len(tokens) - self.order + 1)
        columns = [tokens[i : i + count] for i in range(self.order)]
        if self.in_numbers:
            keys = np.zeros(count, np.uint64)
            for column in columns:
                keys <<= np.uint64(self._bits)
                keys |= column.astype(np.uint64)
            return keys
        digits = [column.astype(">u4").view(np.uint8).reshape(-1, 4) for column in columns]
        return _joined(np.concatenate([each[:, -self._bytes :] for each in digits], axis=1))

    def without_first(self, keys: np.ndarray, order: int) -> np.ndarray:
        """The keys of n-grams of an order, without their oldest token; the order is 2 or more."""
        if self.in_numbers:
            return keys & np.uint64((1 << self._bits * (order - 1)) - 1)
        return _joined(_split(keys)[:, self._bytes :])

    def without_last(self, keys: np.ndarray, order: int) -> np.ndarray:
        """The keys of the histories of n-grams of an order; that of no history is 0."""
        if order == 1:
            return np.zeros(len(keys), np.uint64)
        if self.in_numbers:
            return keys >> np.uint64(self._bits)
        return _joined(_split(keys)[:, : -self._bytes])


def _joined(digits: np.ndarray) -> np.ndarray:
    """(n, bytes) uint8 → (n,) byte strings. They compare as bytes do, for all are of one length."""
    digits = np.ascontiguousarray(digits)
    return digits.view(f"S{digits.shape[1]}").reshape(len(digits))


def _split(keys: np.ndarray) -> np.ndarray:
    """(n,) byte strings → (n, bytes) uint8."""
    keys = np.ascontiguousarray(keys)
    return keys.view(np.uint8).reshape(len(keys), keys.dtype.itemsize)
