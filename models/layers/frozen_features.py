"""A frozen network as a head reads it: a mix of all its layers, then a BiLSTM.

    token_ids → network, without gradient → h_0 … h_L                    (B, T, D) each
      → γ · Σ_j softmax(w)_j · h_j                                        (B, T, D)
      → num_layers × [dropout → BiLSTM] → sequence_output                 (B, T, 2 · hidden_dim)

h_0 is what enters the first block. The variables w, γ and those of the BiLSTM are trained with the
head's; the network is run as in prediction, without dropout.

Reference:
    Peters et al. 2018, arXiv 1802.05365, eq. 1 and 3.3, without the penalty on w; on a Transformer:
    Devlin et al. 2019, arXiv 1810.04805, 5.3 (two layers of 768, no mix).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.summary import MEAN
from models.protocols import Capability


class LayerMix(keras.layers.Layer):
    """The scaled mean of layers with learned weights: γ · Σ_j softmax(w)_j · h_j.

    It begins as the plain mean.

    Args:
        count: Number of layers.

    Shape:
        count × (B, T, D) → (B, T, D) float32.
    """

    def __init__(self, count: int):
        super().__init__(name="mix", dtype="float32", autocast=False)
        self.count = count

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.w = self.add_weight(shape=(self.count,), initializer="zeros", name="w", autocast=False)
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale", autocast=False)
        self.built = True

    def call(self, layers: Sequence[Any]) -> Any:
        """Mix."""
        # Not `ops.softmax`, which warns of a single layer.
        shares = ops.exp(self.w - ops.logsumexp(self.w))
        mixed = sum(shares[j] * ops.cast(h, "float32") for j, h in enumerate(layers))
        return self.scale * mixed


class FeatureReader(keras.layers.Layer):
    """The mix and the BiLSTM: all that is trained below the head, float32.

    Args:
        count: Number of the network's layers, with its embeddings.
        width: D.
        hidden_dim: Width of the LSTM in each direction.
        num_layers: BiLSTMs on top of each other.
        dropout: Dropout rate of each one's input, 0-1.

    Shape:
        count × (B, T, D), padding_mask (B, T) or None → (B, T, 2 · hidden_dim); 0 at the padding.
    """

    def __init__(self, count: int, width: int, *, hidden_dim: int, num_layers: int, dropout: float):
        super().__init__(name="feature_based", dtype="float32", autocast=False)
        self.mix = LayerMix(count)
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")
        # cuDNN's kernel is for GPUs and rows padded on the right; the loop runs everywhere.
        direction: dict[str, Any] = {"return_sequences": True, "use_cudnn": False}
        self.lstms = [
            keras.layers.Bidirectional(
                keras.layers.LSTM(hidden_dim, name="lstm", dtype="float32", **direction),
                name=f"bilstm_{i}",
                dtype="float32",
            )
            for i in range(num_layers)
        ]
        self._widths = [width] + [2 * hidden_dim] * (num_layers - 1)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.mix.build()
        for lstm, width in zip(self.lstms, self._widths, strict=True):
            lstm.build((None, None, width))
        self.built = True

    def call(
        self, layers: Sequence[Any], padding_mask: Any = None, training: bool | None = None
    ) -> Any:
        """Read the layers; neither direction sees the padding."""
        x = self.mix(layers)
        real = None if padding_mask is None else ops.cast(padding_mask, "bool")
        for lstm in self.lstms:
            x = lstm(self.dropout(x, training=training), mask=real, training=training)
        return x


class FrozenFeatures(keras.layers.Layer):
    """A frozen network under a `FeatureReader`, in a network's place below a head.

    A row is summed up by the mean of its tokens' features.

    Args:
        network: A built network; its variables stop being trainable. Without ``hidden_states`` its
            only layer is ``sequence_output``.
        settings: Of the `FeatureReader`.

    Shape:
        As the network, but {sequence_output (B, T, 2 · hidden_dim) float32} alone.
    """

    row_summary = MEAN
    pooler_activation = None

    def __init__(self, network: Any, **settings: Any):
        super().__init__(name="frozen", dtype=network.dtype_policy.name, autocast=False)
        for variable in network.trainable_variables:
            variable.trainable = False
        self.network = network
        self.provides = frozenset(network.provides) - {Capability.POOLED_OUTPUT}
        count = getattr(network, "num_hidden_states", 1)
        self.reader = FeatureReader(count, network.hidden_dim, **settings)
        self.hidden_dim = 2 * self.reader.lstms[0].forward_layer.units
        self.built = True

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Run the network as in prediction, and read its layers."""
        if hasattr(self.network, "hidden_states"):
            layers = self.network.hidden_states(features, training=False)
        else:
            layers = [self.network(features, training=False)[keys.SEQUENCE_OUTPUT]]
        layers = [ops.stop_gradient(layer) for layer in layers]
        mask = features.get(keys.PADDING_MASK)
        return {keys.SEQUENCE_OUTPUT: self.reader(layers, padding_mask=mask, training=training)}
