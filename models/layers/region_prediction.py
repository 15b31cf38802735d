"""Prediction of something for each region of a row's picture."""

from __future__ import annotations

from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.norm import norm_layer
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import ScorerLayer
from models.layers.token_scores import tied_logits


class RegionPrediction(ScorerLayer):
    """A scorer with dense → activation → LayerNorm → dense on each region.

    Args:
        network: The network, which sees.
        name: Name of the objective.
        units: Numbers that are predicted of each region.
        tied: Whether the last matrix is that by which the network reads features, transposed.
    """

    reads = ()

    def __init__(self, network: Any, name: str, units: int, tied: bool = False):
        dtype = network.dtype_policy.name
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.width = network.region_output_dim
        self.transform = ActivatedProjection(
            self.width, activation=network.activation, name="transform", dtype=dtype
        )
        self.norm = norm_layer("norm", network.layer_norm_epsilon)
        # Wrapped in a function, so that Keras does not track the network's embedding here.
        self._table = lambda: network.region_embedding.feature_embedding.kernel  # (E, D)
        self.units = units
        self.output_projection = None
        if not tied:
            self.output_projection = projection(units, name="output", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        for layer in (self.transform, self.norm, self.output_projection):
            if layer is not None:
                layer.build((None, None, self.width))
        if self.output_projection is None:
            self.output_bias = self.add_weight(
                shape=(self.units,), initializer="zeros", name="output_bias", autocast=False
            )
        self.built = True

    def predicted(self, outputs: dict, training: bool | None) -> Any:
        """The predictions of each region, (B, O, units) float32."""
        hidden = self.transform(outputs[keys.REGION_OUTPUT], training=training)
        hidden = self.norm(ops.cast(hidden, "float32"))
        if self.output_projection is None:
            return tied_logits(hidden, self._table(), self.output_bias, self.compute_dtype)
        return ops.cast(self.output_projection(hidden), "float32")

    def loss_weights(self, batch: dict) -> Any:
        """Loss weights of the regions, (B, O) float32."""
        return self.weighted(batch, batch[keys.REGION_WEIGHTS])
