"""Classification of tokens."""

from __future__ import annotations

from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.layers.scorer import Scored, ScorerLayer


class TokenClassifier(ScorerLayer):
    """A scorer with one dense layer on each token's vector.

    Args:
        network: The network that provides the tokens' vectors.
        name: Name of the objective.
        num_classes: N.
        labels: Batch key of the labels, (B, T) int32.
        weights: Batch key of the loss weights, (B, T) float32, 0 for a token without a label.
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
        """Create the variables."""
        self.output_projection.build((None, None, self.hidden_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy over the labelled tokens, and the logits (B, T, N)."""
        hidden = outputs[keys.SEQUENCE_OUTPUT]
        logits = ops.cast(self.output_projection(hidden), "float32")  # (B, T, N)
        predictions = {self.logits_key: logits}
        if self.labels_key not in batch:
            return {}, predictions
        weights = batch[self.weights_key]
        weights = self.weighted(batch, weights)
        return cross_entropy(logits, batch[self.labels_key], weights), predictions
