"""Prediction of something for each region of a row's picture."""

from __future__ import annotations

from typing import Any

import keras

from models import features as keys
from models.layers.norm import norm_layer
from models.layers.projection import ActivatedProjection, projection
from models.layers.scorer import ScorerLayer

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class RegionPrediction(ScorerLayer):
    """A scorer with dense → activation → LayerNorm → dense on each region.

    Args:
        network: The network, which sees.
        name: Name of the objective.
        units: Numbers that are predicted of each region.
    """

    reads = ()

    def __init__(self, network: Any, name: str, units: int):
        dtype = network.dtype_policy.name
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.width = network.region_output_dim
        self.transform = ActivatedProjection(
            self.width, activation=network.activation, name="transform", dtype=dtype
        )
        self.norm = norm_layer("norm", network.layer_norm_epsilon)
        self.output_projection = projection(units, name="output", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        for layer in (self.transform, self.norm, self.output_projection):
            layer.build((None, None, self.width))
        self.built = True

    def predicted(self, outputs: dict, training: bool | None) -> Any:
        """The predictions of each region, (B, O, units) float32."""
        hidden = self.transform(outputs[keys.REGION_OUTPUT], training=training)
        hidden = self.norm(ops.cast(hidden, "float32"))
        return ops.cast(self.output_projection(hidden), "float32")

    def loss_weights(self, batch: dict) -> Any:
        """Loss weights of the regions, (B, O) float32."""
        weights = batch[keys.REGION_WEIGHTS]
        if keys.ROW_WEIGHTS in batch:
            weights = weights * batch[keys.ROW_WEIGHTS][:, None]
        return weights
