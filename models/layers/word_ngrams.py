"""Hashed n-grams of words, which fastText's classifier reads beside the words.

    words w₀ … w₍ₙ₋₁₎ → h = Σ hash(wᵢ) · 116049371ⁿ⁻¹⁻ⁱ modulo 2⁶⁴ → row h modulo buckets

A number of 64 bits is four limbs of 16 bits, so that 32-bit integers hold every sum and every
remainder: JAX has no others.

Reference:
    Joulin et al. 2016, arXiv 1607.01759, 2.2; ``Dictionary::addWordNgrams`` in fastText.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.keras_ops import ops
from models.protocols import Tokenizer
from models.vectors.subwords import ngram_hash

MULTIPLIER = 116_049_371
END = "</s>"  # fastText's word at the end of a row
LIMBS = 4
MOST_BUCKETS = 1 << 23  # a remainder times 256 has to fit in 31 bits
NOT_READ = -1


def word_hashes(tokenizer: Tokenizer, longest: int) -> np.ndarray:
    """The hash of each token, times each power of `MULTIPLIER`: (V, longest, LIMBS) int32.

    A hash counts as a signed number of 32 bits, as in the original. [SEP] is the word `END`. Other
    special tokens, [UNK] among them, are no words: their limbs are `NOT_READ`.

    Args:
        tokenizer: The recipe's tokenizer.
        longest: Words of the longest n-gram.
    """
    words = list(tokenizer.served()["pieces"])
    words[tokenizer.sep_id] = END
    hashes = np.array([ngram_hash(word) for word in words], np.uint32)
    powers = np.array([pow(MULTIPLIER, power, 1 << 64) for power in range(longest)], np.uint64)
    products = hashes.astype(np.int32).astype(np.int64).astype(np.uint64)[:, None] * powers
    shifts = np.arange(0, 64, 16, dtype=np.uint64)
    limbs = (products[..., None] >> shifts & np.uint64(0xFFFF)).astype(np.int32)
    limbs[sorted(set(tokenizer.special_ids) - {tokenizer.sep_id})] = NOT_READ
    return limbs


def ngram_rows(hashes: Any, mask: Any, buckets: int) -> tuple[Any, Any]:
    """The rows of the n-grams of 2 and more words that begin with each word.

    Args:
        hashes: (B, T, N, LIMBS) int32, `word_hashes` of the tokens.
        mask: (B, T) int32, 1 for a word that is read. An n-gram has no other word.
        buckets: Number of rows, at most `MOST_BUCKETS`.

    Returns:
        (B, T, N - 1) int32 rows, and 1 where there is such an n-gram, else 0.
    """
    length, longest = ops.shape(hashes)[1], hashes.shape[2]
    beyond = longest - 1
    hashes = ops.pad(hashes, ((0, 0), (0, beyond), (0, 0), (0, 0)))
    mask = ops.pad(mask, ((0, 0), (0, beyond)))
    rows, there = [], []
    for number in range(2, longest + 1):
        places = range(number)
        total = sum(hashes[:, i : i + length, number - 1 - i] for i in places)
        rows.append(_remainder(total, buckets))
        there.append(ops.min(ops.stack([mask[:, i : i + length] for i in places]), axis=0))
    return ops.stack(rows, axis=-1), ops.stack(there, axis=-1)


def _remainder(limbs: Any, divisor: int) -> Any:
    """Numbers modulo 2⁶⁴ modulo `divisor`, (…, LIMBS) → (…); a limb may be a sum of limbs."""
    carry, digits = 0, []
    for i in range(LIMBS):
        limb = limbs[..., i] + carry
        digits.append(limb % 65_536)
        carry = limb // 65_536
    found = ops.zeros_like(digits[0])
    for digit in reversed(digits):
        for byte in (digit // 256, digit % 256):
            found = (found * 256 + byte) % divisor
    return found
