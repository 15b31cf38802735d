"""The wide part of a head: scores from counted n-grams, beside the network's.

    one text    (1 + ln count) · idf, each kind to length 1 → linear                   ─┐
    two texts   the same of both, which have buckets of their own                        ├→ (…, N)
                how alike they are (`models.layers.likeness`) → linear                 ─┘

It is TF-IDF with a linear machine, or with ridge regression, learned from the training rows before
the network (`models.linear_machine`, `models.number_machine`) and then fixed. The network learns by
itself, and answers are by a weighted sum of both (`models.blend`).

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
from models.inputs.hashed_ngrams import BITS, BUCKETS, KINDS, SECOND
from models.keras_ops import ops
from models.layers.likeness import ALIKE, likeness, to_length_1
from models.linear_machine import Machine


class WidePart(keras.layers.Layer):
    """Scores of rows from their n-grams; all its variables are fixed.

    Args:
        size: N.

    Shape:
        {ngram_ids (…, K), ngram_counts (…, K), of pairs (…, K, 2)} or {ngram_logits (…, N)}
        → (…, N) float32.
    """

    def __init__(self, size: int):
        super().__init__(name="wide", dtype="float32", autocast=False)
        self.size = size

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, of which nothing is known yet."""
        # Without autocast: under a bfloat16 network they would be rounded at every use.
        fixed: dict[str, Any] = {"initializer": "zeros", "trainable": False, "autocast": False}
        self.idf = self.add_weight(shape=(BUCKETS,), name="idf", **fixed)
        self.kernel = self.add_weight(shape=(BUCKETS, self.size), name="kernel", **fixed)
        self.bias = self.add_weight(shape=(self.size,), name="bias", **fixed)
        self.alike = self.add_weight(shape=(ALIKE, self.size), name="alike", **fixed)
        self.blend = self.add_weight(shape=(2,), name="blend", **fixed)
        self.built = True

    def call(self, batch: dict) -> Any:
        """The scores; of training rows those of a machine that has not seen them."""
        if keys.NGRAM_LOGITS in batch:
            return batch[keys.NGRAM_LOGITS]
        ids, counts = batch[keys.NGRAM_IDS], ops.cast(batch[keys.NGRAM_COUNTS], "float32")
        if len(counts.shape) == len(ids.shape):
            return self._counted(ids, counts)
        of_both = both_ids(ids), counts
        found = self._counted(*(_side_by_side(each) for each in of_both))
        return found + ops.matmul(compared(batch, self.idf), ops.convert_to_tensor(self.alike))

    def beside(self, scores: Any, counted: Any) -> Any:
        """The blend of a network's scores and the n-grams', (…, N) each."""
        return self.blend[0] * scores + self.blend[1] * counted

    def learn(self, machine: Machine, blend: Sequence[float] = EQUAL) -> None:
        """Take over what was learned, and factors to begin with."""
        self.idf.assign(machine.idf)
        self.kernel.assign(machine.kernel)
        self.bias.assign(machine.bias)
        if machine.alike is not None:
            self.alike.assign(machine.alike)
        self.blend.assign(blend)

    def _counted(self, ids: Any, counts: Any) -> Any:
        """The linear machine's scores (…, N) of buckets (…, K), of which a row has some."""
        values = _often(counts) * ops.take(self.idf, ids)
        kinds = ids // (1 << BITS)
        parts = [to_length_1(ops.where(kinds == kind, values, 0.0)) for kind in range(KINDS)]
        values: Any = sum(parts[1:], parts[0])
        kernel = ops.take(self.kernel, ids, axis=0)  # (…, K, N)
        return ops.sum(values[..., None] * kernel, axis=-2) + self.bias


def compared(batch: dict, idf: Any) -> Any:
    """How alike the two texts of each row are, (…, A) float32.

    Args:
        batch: ngram_ids (…, K), ngram_counts (…, K, 2).
        idf: (BUCKETS,) float32. An n-gram has the mean of its weights as one of first and one of
            second texts; where too few training rows have it, the largest weight of all: a name
            that only these two texts have tells most.
    """
    ids, counts = batch[keys.NGRAM_IDS], ops.cast(batch[keys.NGRAM_COUNTS], "float32")
    idf = ops.convert_to_tensor(idf, dtype="float32")
    own = ops.take(idf, both_ids(ids))
    weights = ops.mean(ops.where(own > 0, own, ops.max(idf)), axis=-1, keepdims=True)
    return likeness(ids, counts, _often(counts) * weights)


def both_ids(ids: Any) -> Any:
    """The buckets of first and of second texts, (…, K, 2), of those of either (…, K)."""
    return ops.stack([ids, ops.bitwise_xor(ids, SECOND)], axis=-1)


def _often(counts: Any) -> Any:
    """1 + ln count, 0 for none; of float32."""
    return ops.where(counts > 0, 1.0 + ops.log(ops.maximum(counts, 1.0)), 0.0)


def _side_by_side(values: Any) -> Any:
    """(…, K, 2) as (…, K · 2)."""
    shape = ops.shape(values)
    return ops.reshape(values, (*shape[:-2], shape[-2] * shape[-1]))
