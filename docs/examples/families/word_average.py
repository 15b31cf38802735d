"""Word average: a row's vector is the mean of its tokens' vectors; no token sees another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.projection import projection
from models.protocols import Capability

PROVIDES = ("pooled_output",)
SIZES = {"tiny": {"hidden_dim": 32}, "base": {"hidden_dim": 300}}


class WordAverage(keras.Model):
    """Mean of token vectors, then dense → tanh.

    Args:
        vocabulary_size: Number of token ids.
        hidden_dim: Width of a token's vector.
        dtype: Policy name of the matrix products.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D), pooled_output (B, D)}

    Reference:
        Iyyer et al. 2015, ACL P15-1162 (deep averaging networks), one layer.
    """

    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = "mean"

    def __init__(
        self,
        *,
        vocabulary_size: int,
        hidden_dim: int,
        dtype: str = "float32",
        name: str = "word_average",
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.token_embedding = keras.layers.Embedding(
            vocabulary_size, hidden_dim, name="token", dtype="float32"
        )
        self.pooler = projection(hidden_dim, name="pooler", dtype=dtype, stddev=0.2)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        self.token_embedding.build((None, None))
        self.pooler.build((None, self.hidden_dim))
        self.built = True

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Average; other keys of `features` are ignored."""
        x = self.token_embedding(features[keys.TOKEN_IDS])  # (B, T, D)
        mask = features.get(keys.PADDING_MASK)
        mask = ops.ones_like(x[..., :1]) if mask is None else ops.cast(mask[..., None], x.dtype)
        mean = ops.sum(x * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)  # (B, D)
        pooled = ops.tanh(ops.cast(self.pooler(mean), "float32"))
        return {keys.SEQUENCE_OUTPUT: x, keys.POOLED_OUTPUT: pooled}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "dtype": self.dtype_policy.name,
            "name": self.name,
        }
