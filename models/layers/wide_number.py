"""The wide part of a head that answers with a number: of one text, or of how alike two are.

    ngram_ids (B, K), ngram_counts (B, K)      → as `models.layers.wide`, with one weight a bucket
    ngram_ids (B, K), ngram_counts (B, K, 2)   → how alike both texts are (B, A) → linear
                                                               → number (B, 1), in deviations

How alike, for each kind of n-grams: the cosine of both texts' TF-IDF, and the share of the shorter
text's n-grams that the other one has; then the difference of the logarithms of their lengths; then
the squares of all these.

Reference:
    Salton and McGill 1983, "Introduction to Modern Information Retrieval" (cosine, overlap).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models import features as keys
from models.blend import EQUAL
from models.inputs.hashed_ngrams import BITS, KINDS
from models.keras_ops import ops
from models.layers.wide import WidePart, often, to_length_1
from models.linear_machine import Machine

ALIKE = 2 * (2 * KINDS + 1)  # A


class WideNumber(WidePart):
    """Numbers of rows from their n-grams; all its variables are fixed.

    Shape:
        {ngram_ids (B, K), ngram_counts (B, K) or (B, K, 2)} or {ngram_logits (B, 1)} → (B, 1)
        float32.
    """

    def __init__(self) -> None:
        super().__init__(1)

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, of which nothing is known yet."""
        self.alike = self.add_weight(
            shape=(ALIKE, 1), name="alike", initializer="zeros", trainable=False
        )
        super().build(input_shape)

    def call(self, batch: dict) -> Any:
        """The numbers; of training rows those of a machine that has not seen them."""
        if keys.NGRAM_LOGITS in batch or len(batch[keys.NGRAM_COUNTS].shape) == 2:
            return super().call(batch)
        return ops.matmul(likeness(batch, self.idf), self.alike) + self.bias

    def learn(self, machine: Machine, blend: Sequence[float] = EQUAL) -> None:
        """Take over what was learned, and factors to begin with."""
        super().learn(machine, blend)
        self.alike.assign(machine.alike)


def likeness(batch: dict, idf: Any) -> Any:
    """How alike the two texts of each row are, (B, A) float32.

    Args:
        batch: ngram_ids (B, K), ngram_counts (B, K, 2).
        idf: (BUCKETS,) float32.
    """
    ids, counts = batch[keys.NGRAM_IDS], ops.cast(batch[keys.NGRAM_COUNTS], "float32")
    values = often(counts) * ops.take(ops.convert_to_tensor(idf), ids)[..., None]  # (B, K, 2)
    found = []
    for kind in range(KINDS):
        here = (ids // (1 << BITS) == kind)[..., None]
        own = ops.where(here, values, 0.0)
        has = ops.cast(ops.logical_and(here, counts > 0), "float32")
        found.append(ops.sum(to_length_1(own[..., 0]) * to_length_1(own[..., 1]), axis=-1))
        fewer = ops.min(ops.sum(has, axis=1), axis=-1)
        found.append(ops.sum(has[..., 0] * has[..., 1], axis=-1) / ops.maximum(fewer, 1.0))
    lengths = ops.log1p(ops.sum(counts, axis=1))  # in n-grams, most of which are of characters
    found.append(ops.abs(lengths[:, 0] - lengths[:, 1]))
    alike = ops.stack(found, axis=-1)
    return ops.concatenate([alike, ops.square(alike)], axis=-1)
