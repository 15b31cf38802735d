"""TF-IDF: no network at all. A row's vector is zero, so that a head answers by its wide part alone.

    token_ids → sequence_output (B, T, 1), all zeros

The head counts n-grams (`models.layers.wide`) and is the only part with weights; its bias is all
that updates move. So the cheap baseline is trained, tracked, gated and served as other models are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops

PROVIDES = ()
SIZES = {"tiny": {}}
COUNTS = True  # it has no vectors: only a head that can be wide goes with it


class TFIDF(keras.Model):
    """Zeros in the place of a network's outputs.

    Args:
        vocabulary_size: Number of token ids; not used.
        dtype: Policy name; not used.

    Shape:
        {token_ids (B, T)} → {sequence_output (B, T, 1) float32}

    Reference:
        Spärck Jones 1972, Journal of Documentation 28; with a linear SVM: Joachims 1998, ECML.
    """

    provides = frozenset()
    row_summary = "first"
    pooler_activation = None
    hidden_dim = 1
    token_embedding = None  # nothing to tie weights to
    counts_only = True

    def __init__(self, *, vocabulary_size: int, dtype: str = "float32", name: str = "tfidf"):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.vocabulary_size = vocabulary_size
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Nothing to create."""
        self.built = True

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Zeros."""
        ids = features[keys.TOKEN_IDS]
        return {keys.SEQUENCE_OUTPUT: ops.zeros_like(ids[..., None], dtype="float32")}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "dtype": self.dtype_policy.name,
            "name": self.name,
        }
