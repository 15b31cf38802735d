"""Token prediction with an output matrix that is tied to the network's token embedding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from models.layers.projection import ActivatedProjection

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def token_logits(network: Any) -> Callable[[Any], Any]:
    """What predicts tokens from a network's last states.

    The output matrix is the network's `output_table` where it has one, else its token embedding. A
    bias is added where the network has an `output_bias`.

    Args:
        network: The network.

    Returns:
        A function from (…, D) to (…, V) float32. Keras does not track the network in it.
    """
    own, scale = getattr(network, "output_table", None), getattr(network, "output_scale", None)

    def logits(hidden: Any) -> Any:
        dtype, bias = network.dtype_policy.compute_dtype, getattr(network, "output_bias", None)
        if own is not None:
            return tied_logits(hidden, own, bias, dtype)
        return tied_logits(hidden, network.token_embedding.embeddings, bias, dtype, scale)

    return logits


def tied_logits(
    hidden: Any, table: Any, bias: Any, compute_dtype: str, scale: float | None = None
) -> Any:
    """Logits of all tokens: product with the token embedding, plus a bias.

    Args:
        hidden: (…, E).
        table: The token embedding, (V, E).
        bias: (V,), or None for none.
        compute_dtype: Dtype of the product.
        scale: The network's ``output_scale``: factor on `hidden`; None for 1.

    Returns:
        (…, V) float32.
    """
    if scale is not None:
        hidden = hidden * scale
    table = ops.cast(table, compute_dtype)
    logits = ops.matmul(ops.cast(hidden, compute_dtype), ops.transpose(table))
    logits = ops.cast(logits, "float32")
    return logits if bias is None else logits + bias


class TokenPrediction(keras.layers.Layer):
    """BERT's prediction head: dense → activation → LayerNorm → tied token embedding and a bias.

    If the embedding is narrower than the network (ALBERT, ELECTRA), the dense layer reduces the
    width.

    Args:
        network: The network. The head uses its token embedding, width, LayerNorm epsilon, dtype and
            ``head_activation``, if it has one, else its ``activation``.
        name: Name of the layer.

    Reference:
        Devlin et al. 2019, arXiv 1810.04805, 3.1; Lan et al. 2020, arXiv 1909.11942, 3.1.
    """

    def __init__(self, network: Any, name: str):
        dtype = network.dtype_policy.name
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.hidden_dim = network.hidden_dim
        # Wrapped in a function, so that Keras does not track the network's embedding here.
        self._table = lambda: network.token_embedding.embeddings
        self._scale: float | None = getattr(network, "output_scale", None)
        self.vocabulary_size, self.embedding_dim = self.tied_embedding.shape
        self.transform = ActivatedProjection(
            self.embedding_dim,
            activation=getattr(network, "head_activation", None) or network.activation,
            name="transform",
            dtype=dtype,
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=network.layer_norm_epsilon, name="norm", dtype="float32"
        )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.transform.build((None, None, self.hidden_dim))
        self.norm.build((None, None, self.embedding_dim))
        # The variable's autocast would round it to bfloat16 at every use; the layer's own setting
        # applies to inputs only.
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", name="output_bias", autocast=False
        )
        self.built = True

    @property
    def tied_embedding(self) -> Any:
        """The network's token embedding, used as the output matrix, (V, E)."""
        return self._table()

    def logits(self, hidden: Any, training: bool | None = None) -> Any:
        """(B, M, D) → (B, M, V) float32."""
        hidden = self.norm(self.transform(hidden, training=training))  # (B, M, E)
        return tied_logits(
            hidden, self.tied_embedding, self.output_bias, self.compute_dtype, self._scale
        )
