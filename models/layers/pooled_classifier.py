"""Classification of rows from the pooled vector."""

from __future__ import annotations

from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.layers.scorer import Scored, ScorerLayer


class PooledClassifier(ScorerLayer):
    """A scorer with one dense layer on the pooled vector.

    Args:
        network: The network that provides the pooled vector.
        name: Name of the objective.
        num_classes: N.
        labels: Batch key of the labels, (B,) int32.
        logits: Key of the predictions, (B, N).
    """

    reads = ()

    def __init__(self, network: Any, name: str, num_classes: int, labels: str, logits: str):
        dtype = network.dtype_policy.name
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.pooled_dim = getattr(network, "pooled_dim", network.hidden_dim)
        self.labels_key, self.logits_key = labels, logits
        self.output_projection = projection(num_classes, name="output", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.output_projection.build((None, self.pooled_dim))
        self.built = True

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy over rows, and the logits (B, N)."""
        logits = ops.cast(self.output_projection(outputs[keys.POOLED_OUTPUT]), "float32")  # (B, N)
        predictions = {self.logits_key: logits}
        if self.labels_key not in batch:
            return {}, predictions
        labels = batch[self.labels_key]
        weights = self.weighted(batch, ops.ones_like(labels, dtype="float32"))
        return cross_entropy(logits, labels, weights), predictions
