"""Token prediction with an output matrix that is tied to the network's token embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from models.layers.projection import ActivatedProjection
from models.layers.token_scores import kernel_of, tied_logits, token_scores


@dataclass(frozen=True)
class TokenOutput:
    """What predicts tokens from a network's last states.

    The output matrix is the network's `output_table` where it has one, else its token embedding;
    with its `output_bias` and `output_scale`, where it has them. Keras does not track the network
    in it.

    Attributes:
        network: The network.
    """

    network: Any

    def logits(self, hidden: Any, kernel: Any = None) -> Any:
        """(…, D) → (…, V) float32, with `kernel` where it is at hand."""
        return tied_logits(hidden, *self._parts(), kernel=kernel)

    def kernel(self) -> Any:
        """The output matrix as the kernel of a dense layer, (D, V)."""
        table, _, dtype, _ = self._parts()
        return kernel_of(table, dtype)

    def scores(
        self, hidden: Any, labels: Any, weights: Any, training: bool | None, **smoothing: Any
    ) -> dict[str, tuple[Any, Any]]:
        """Cross-entropy and accuracy of (…) labels (`token_scores`)."""
        table, bias, dtype, scale = self._parts()
        return token_scores(
            hidden, table, bias, labels, weights, dtype, scale, training=training, **smoothing
        )

    def _parts(self) -> tuple[Any, Any, str, float | None]:
        network = self.network
        dtype, bias = network.dtype_policy.compute_dtype, getattr(network, "output_bias", None)
        own = getattr(network, "output_table", None)
        if own is not None:
            return own, bias, dtype, None
        scale = getattr(network, "output_scale", None)
        return network.token_embedding.embeddings, bias, dtype, scale


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

    def logits(self, hidden: Any, kernel: Any = None, *, training: bool | None = None) -> Any:
        """(B, M, D) → (B, M, V) float32, with `kernel` where it is at hand."""
        hidden = self.norm(self.transform(hidden, training=training))  # (B, M, E)
        return tied_logits(hidden, *self._output(), kernel=kernel)

    def kernel(self) -> Any:
        """The output matrix as the kernel of a dense layer, (E, V)."""
        return kernel_of(self.tied_embedding, self.compute_dtype)

    def token_scores(
        self, hidden: Any, labels: Any, weights: Any, training: bool | None, **smoothing: Any
    ) -> dict[str, tuple[Any, Any]]:
        """Cross-entropy and accuracy of (B, M) labels (`models.layers.token_scores`)."""
        hidden = self.norm(self.transform(hidden, training=training))
        table, bias, dtype, scale = self._output()
        return token_scores(
            hidden, table, bias, labels, weights, dtype, scale, training=training, **smoothing
        )

    def _output(self) -> tuple[Any, Any, str, float | None]:
        return self.tied_embedding, self.output_bias, self.compute_dtype, self._scale
