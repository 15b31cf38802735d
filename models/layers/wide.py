"""The wide part of a classification head: logits from counted n-grams, beside the network's.

    ngram_ids, ngram_counts → (1 + ln count) · idf, each kind to length 1 → linear → logits (B, N)

It is TF-IDF with a linear machine, learned from the training rows before the network
(`models.linear_machine`) and then fixed. The network learns the labels by itself, and answers are
by a weighted sum of both (`models.blend`).

Reference:
    Cheng et al. 2016, arXiv 1606.07792: a linear model and a network on one sum of logits. There
    both are trained together; here each is trained alone (docs/decisions/0077).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from models import features as keys
from models.blend import EQUAL
from models.inputs.hashed_ngrams import BITS, BUCKETS, KINDS
from models.keras_ops import ops
from models.linear_machine import Machine


class WidePart(keras.layers.Layer):
    """Logits of rows from their n-grams; all its variables are fixed.

    Args:
        num_labels: N.

    Shape:
        {ngram_ids, ngram_counts (B, K)} or {ngram_logits (B, N)} → (B, N) float32.
    """

    def __init__(self, num_labels: int):
        super().__init__(name="wide", dtype="float32", autocast=False)
        self.num_labels = num_labels

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, of which nothing is known yet."""
        fixed: dict[str, Any] = {"initializer": "zeros", "trainable": False}
        self.idf = self.add_weight(shape=(BUCKETS,), name="idf", **fixed)
        self.kernel = self.add_weight(shape=(BUCKETS, self.num_labels), name="kernel", **fixed)
        self.bias = self.add_weight(shape=(self.num_labels,), name="bias", **fixed)
        self.blend = self.add_weight(shape=(2,), name="blend", **fixed)
        self.built = True

    def call(self, batch: dict) -> Any:
        """The logits; of training rows those of a machine that has not seen them."""
        if keys.NGRAM_LOGITS in batch:
            return batch[keys.NGRAM_LOGITS]
        ids = batch[keys.NGRAM_IDS]
        counts = ops.cast(batch[keys.NGRAM_COUNTS], "float32")
        values = often(counts) * ops.take(self.idf, ids)  # (B, K)
        kinds = ids // (1 << BITS)
        parts = [to_length_1(ops.where(kinds == kind, values, 0.0)) for kind in range(KINDS)]
        values: Any = sum(parts[1:], parts[0])
        kernel = ops.take(self.kernel, ids, axis=0)  # (B, K, N)
        return ops.sum(values[..., None] * kernel, axis=1) + self.bias

    def beside(self, scores: Any, batch: dict) -> Any:
        """The blend of a network's scores (B, N) and the n-grams'."""
        return self.blend[0] * scores + self.blend[1] * self(batch)

    def learn(self, machine: Machine, blend: Sequence[float] = EQUAL) -> None:
        """Take over what was learned, and factors to begin with."""
        self.idf.assign(machine.idf)
        self.kernel.assign(machine.kernel)
        self.bias.assign(machine.bias)
        self.blend.assign(blend)


def often(counts: Any) -> Any:
    """1 + ln count, 0 for none; of float32."""
    return ops.where(counts > 0, 1.0 + ops.log(ops.maximum(counts, 1.0)), 0.0)


def to_length_1(values: Any) -> Any:
    """Rows (B, K) divided by their length; rows of zeros stay."""
    length = ops.sqrt(ops.sum(ops.square(values), axis=-1, keepdims=True))
    return ops.divide_no_nan(values, length)
