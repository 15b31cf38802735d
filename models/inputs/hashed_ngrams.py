"""Hashed n-grams of a row's texts: what the wide part of a head reads (`models.layers.wide`).

    token ids    the ##y saw           n-grams of 1 and 2 pieces
    characters   ␣ t h e y ␣ s a w     n-grams of 3 to 5 characters, made of the same pieces
      → buckets, and how often each text of a row has an n-gram of a bucket

One function of TensorFlow makes them for training, for evaluation and in the served graph, so that
a text has the same buckets everywhere. Its operations are on integers, hence exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from models import features as keys
from models.protocols import Batch, Tokenizer
from models.served.pieces import CONTINUATION, is_cjk

PIECES, CHARACTERS = (1, 2), (3, 4, 5)  # lengths of n-grams
KINDS = 2
BITS = 17
BUCKETS = KINDS << BITS  # those of pieces, then as many of characters
SECOND = 0x12E15  # changes a bucket's number, of BITS bits, to that of second texts
_MULTIPLIER = 0x9E3779B97F4A7C15 - (1 << 64)  # 2⁶⁴ / golden ratio, odd, as int64 (Knuth, 6.4)
_BLANK = ord(" ")


class Ngrams:
    """Buckets of the n-grams of texts, which are not cut to the sequence length.

    N-grams of pieces and of characters, and of different lengths, have different hashes. Two
    n-grams may share a bucket. Both texts of a pair have the same hashes, so that they can be
    compared; bucket ⊕ `SECOND` tells those of the second apart.

    Args:
        tokenizer: The recipe's tokenizer, which knows how its pieces are spelled.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer

    def of(self, columns: Sequence[Any]) -> dict[str, Any]:
        """The buckets of rows.

        Args:
            columns: Token ids of the rows' texts, or of the first and of the second texts of pairs,
                (B, n) ragged int32 each.

        Returns:
            ngram_ids (B, K) int32, the buckets of either text in order, and how often it has them:
            ngram_counts (B, K) int32, of pairs (B, K, 2). Count 0 fills up.
        """
        import tensorflow as tf

        # One number for a row and a bucket, so that all rows are counted at once.
        texts = [tf.concat(self._hashes(ids), axis=0) for ids in columns]
        distinct, _, counts = tf.unique_with_counts(tf.sort(tf.concat(texts, axis=0)))
        if len(texts) > 1:
            size = tf.size(distinct)
            found = [
                tf.math.bincount(tf.searchsorted(distinct, own), minlength=size) for own in texts
            ]
            counts = tf.stack(found, axis=1)
        return _by_row(columns[0].nrows(), distinct, counts)

    def of_texts(self, texts: Sequence[tuple[np.ndarray, ...]]) -> Batch:
        """The buckets of rows by the token ids of their texts, one or two of each row.

        K is a power of two: a backend may compile a step for each width.
        """
        import tensorflow as tf

        with tf.device("CPU"):
            columns = [_ragged(texts, number) for number in range(max(map(len, texts)))]
            found = self.of(columns)
        return {name: _widened(value.numpy()) for name, value in found.items()}

    def _hashes(self, ids: Any) -> list[Any]:
        """For each kind and length of n-grams, (n-grams,) int64 row · BUCKETS + bucket."""
        import tensorflow as tf

        tokens, rows = ids.values, ids.value_rowids()
        codes, starts, lengths = self._spelled
        of_token = tf.gather(tf.constant(lengths), tokens)
        spelled: Any = tf.ragged.range(
            tf.gather(tf.constant(starts), tokens), tf.gather(tf.constant(starts + lengths), tokens)
        )
        characters = tf.gather(tf.constant(codes), spelled.values)
        rows_of_characters = tf.repeat(rows, of_token)
        kinds = (
            (tf.cast(tokens, tf.int64), rows, PIECES),
            (characters, rows_of_characters, CHARACTERS),
        )
        return [
            _hashed(values, own_rows, length) + (kind << BITS)
            for kind, (values, own_rows, some) in enumerate(kinds)
            for length in some
        ]

    @cached_property
    def _spelled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The characters of all pieces one after the other; each piece's first, and its number."""
        said = self._tokenizer.served()
        spelled = [_spelling(piece, said["bytes"]) for piece in said["pieces"]]
        lengths = np.array([len(codes) for codes in spelled], np.int64)
        codes = np.array([code for own in spelled for code in own], np.int64)
        return codes, np.cumsum(lengths) - lengths, lengths


def _spelling(piece: str, is_bytes: bool) -> list[int]:
    """The characters of a piece, or its bytes, in lower case; with the blank before a word."""
    if is_bytes:
        return list(piece.encode("latin-1").lower())
    if piece.startswith(CONTINUATION):
        return [ord(character) for character in piece.removeprefix(CONTINUATION).lower()]
    blank = [] if is_cjk(piece[0]) else [_BLANK]
    return blank + [ord(character) for character in piece.lower()]


def _by_row(rows: Any, distinct: Any, counts: Any) -> dict[str, Any]:
    """What belongs to each row, filled up with 0.

    Args:
        rows: B.
        distinct: (n,) int64 row · BUCKETS + bucket, in order.
        counts: (n, …) how often.
    """
    import tensorflow as tf

    ragged: Any = tf.RaggedTensor  # whose constructors the stubs do not know
    buckets = ragged.from_value_rowids(distinct % BUCKETS, distinct // BUCKETS, rows)
    return {
        keys.NGRAM_IDS: tf.cast(buckets.to_tensor(0), tf.int32),
        keys.NGRAM_COUNTS: buckets.with_values(counts).to_tensor(0),
    }


def _hashed(values: Any, rows: Any, length: int) -> Any:
    """(n-grams,) int64 row · BUCKETS + bucket, of the n-grams of one length within rows."""
    import tensorflow as tf

    count = tf.maximum(tf.size(values) - length + 1, 0)
    hashes = tf.fill([count], tf.constant(length, tf.int64))
    for place in range(length):
        # Wraps at 2⁶⁴. The highest bits depend on all parts.
        hashes = (hashes + values[place : place + count] + 1) * _MULTIPLIER
    buckets = tf.bitwise.bitwise_and(tf.bitwise.right_shift(hashes, 64 - BITS), (1 << BITS) - 1)
    first, last = rows[:count], rows[length - 1 : length - 1 + count]
    return tf.boolean_mask(first * BUCKETS + buckets, first == last)


def _ragged(texts: Sequence[tuple[np.ndarray, ...]], number: int) -> Any:
    """The rows' texts of one number as (B, n) ragged int32; a row without one has no tokens."""
    import tensorflow as tf

    own = [each[number] if number < len(each) else np.zeros(0, np.int32) for each in texts]
    ragged: Any = tf.RaggedTensor
    return ragged.from_row_lengths(np.concatenate(own), [len(ids) for ids in own])


def _widened(values: np.ndarray) -> np.ndarray:
    """(B, K, …) filled up with zeros until K is a power of two."""
    width = 1 << max(values.shape[1] - 1, 0).bit_length()
    return np.pad(values, [(0, 0), (0, width - values.shape[1]), *[(0, 0)] * (values.ndim - 2)])
