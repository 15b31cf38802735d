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

    def mean_beside(self, batch: dict, score: str, of_score: tuple[Any, Any], weight: Any) -> Any:
        """What adds the mean of another score to the mean of the loss: that mean times `weight`.

        Both means are over the whole batch. A micro-batch has an uneven share of either weight, or
        none, so that a mean of its own would count too much or too little.

        Args:
            batch: The batch.
            score: Name of the other score, which the scorer returns by itself, too.
            of_score: Its sum and weight.
            weight: That of the loss.
        """
        total, count = of_score
        count = batch.get(f"{keys.WHOLE}{self.name}/{score}", count)
        weight = batch.get(f"{keys.WHOLE}{self.name}/loss", weight)
        return weight * ops.divide_no_nan(total, count)
