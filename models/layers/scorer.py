"""Base class of scorers."""

from __future__ import annotations

from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.shared_tokens import SharedTokens

# Scores as {name: (sum, weight)}, including "loss", and predictions by name.
Scored = tuple[dict[str, tuple[Any, Any]], dict]


class ScorerLayer(keras.layers.Layer):
    """A `models.protocols.Scorer` that does not change the batch.

    Attributes:
        shared_tokens: What it adds to the vectors of tokens that both texts of a row have, if
            anything (`models.layers.shared_tokens`).
    """

    shared_tokens: SharedTokens | None = None

    def prepare(self, batch: dict, training: bool) -> dict:
        """Return the batch, with what is added to the tokens' vectors."""
        if self.shared_tokens is None:
            return batch
        return batch | {keys.ADDED_VECTORS: self.shared_tokens(batch)}

    @staticmethod
    def weighted(batch: dict, weights: Any) -> Any:
        """Loss weights (B, …) times those of the rows, where the batch has them."""
        if keys.ROW_WEIGHTS not in batch:
            return weights
        rows = batch[keys.ROW_WEIGHTS]
        return weights * ops.reshape(rows, (-1, *[1] * (len(weights.shape) - 1)))
