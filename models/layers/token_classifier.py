"""A few classes told apart at each token."""

from __future__ import annotations

from typing import Any

import keras

from models import features as keys
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.layers.scorer import ScorerLayer

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class TokenClassifier(ScorerLayer):
    """A scorer with one dense layer on each token's vector.

    Args:
        network: Provides the tokens' vectors.
        name: Of the objective.
        num_classes: N.
        labels: Key of the labels, (B, T) int32, in a batch.
        weights: Key of their weights, (B, T) float32, 0 for a token that is not asked about.
        logits: Key of the predictions, (B, T, N).
    """

    def __init__(
        self, network: Any, name: str, num_classes: int, labels: str, weights: str, logits: str
    ):
        dtype = network.dtype_policy.name
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.hidden_dim = network.hidden_dim
        self.labels_key, self.weights_key, self.logits_key = labels, weights, logits
        self.output_projection = projection(num_classes, name="output", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        self.output_projection.build((None, None, self.hidden_dim))
        self.built = True

    def call(
        self, batch: dict, outputs: dict, training: bool | None = None
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Loss and accuracy at the tokens that are asked about."""
        hidden = outputs[keys.SEQUENCE_OUTPUT]
        logits = ops.cast(self.output_projection(hidden), "float32")  # (B, T, N)
        predictions = {self.logits_key: logits}
        if self.labels_key not in batch:
            return {}, predictions
        weights = batch[self.weights_key]
        if keys.ROW_WEIGHTS in batch:
            weights = weights * batch[keys.ROW_WEIGHTS][:, None]
        return cross_entropy(logits, batch[self.labels_key], weights), predictions
