"""How alike the two texts of a pair are, by their n-grams.

    ngram_ids (…, K), ngram_counts (…, K, 2)  →  (…, A)

For each kind of n-grams: the cosine of both texts' TF-IDF, and the share of the shorter text's
n-grams that the other one has; then the difference of the logarithms of their lengths; then the
squares of all these.

Reference:
    Salton and McGill 1983, "Introduction to Modern Information Retrieval" (cosine, overlap).
"""

from __future__ import annotations

from typing import Any

from models.inputs.hashed_ngrams import BITS, KINDS
from models.keras_ops import ops

ALIKE = 2 * (2 * KINDS + 1)  # A


def likeness(ids: Any, counts: Any, values: Any) -> Any:
    """How alike the two texts of each row are, (…, A) float32.

    Args:
        ids: (…, K) int32, buckets of either text.
        counts: (…, K, 2) float32, how often each text has them.
        values: (…, K, 2) float32, their TF-IDF in each text.
    """
    found = []
    for kind in range(KINDS):
        here = (ids // (1 << BITS) == kind)[..., None]
        own = ops.where(here, values, 0.0)
        has = ops.cast(ops.logical_and(here, counts > 0), "float32")
        found.append(ops.sum(to_length_1(own[..., 0]) * to_length_1(own[..., 1]), axis=-1))
        fewer = ops.min(ops.sum(has, axis=-2), axis=-1)
        found.append(ops.sum(has[..., 0] * has[..., 1], axis=-1) / ops.maximum(fewer, 1.0))
    lengths = ops.log1p(ops.sum(counts, axis=-2))  # in n-grams, most of which are of characters
    found.append(ops.abs(lengths[..., 0] - lengths[..., 1]))
    alike = ops.stack(found, axis=-1)
    return ops.concatenate([alike, ops.square(alike)], axis=-1)


def to_length_1(values: Any) -> Any:
    """Rows (…, K) divided by their length; rows of zeros stay."""
    length = ops.sqrt(ops.sum(ops.square(values), axis=-1, keepdims=True))
    return ops.divide_no_nan(values, length)
