"""One Transformer block: attention and a feed-forward network, each with a residual connection."""

from __future__ import annotations

from typing import Any

import keras

from models.layers.attention import MultiHeadAttention, Past
from models.layers.gather import gather_positions
from models.layers.projection import ActivatedProjection, projection

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class TransformerBlock(keras.layers.Layer):
    """Attention and feed-forward network, each with a residual connection and a LayerNorm.

        post-LN (BERT, GPT)     x ← norm(x + f(x))
        pre-LN (GPT-2)          x ← x + f(norm(x))

    The residual stream and both LayerNorms are always float32; only the matrix products use the
    compute dtype.

    Args:
        hidden_dim: Width of the residual stream.
        num_heads: Number of attention heads.
        intermediate_dim: Width of the feed-forward network's inner layer.
        dropout: Dropout rate of the attention weights and of both residual branches, 0-1.
        activation: Name of the feed-forward activation.
        layer_norm_epsilon: Added to the variance: 1e-12 BERT, 1e-5 RoBERTa, BART and GPT.
        norm_first: Whether LayerNorm precedes (pre-LN) instead of following (post-LN).
        residual_stddev: Standard deviation of the initial kernels that write to the residual
            stream.
        dtype: Dtype policy of the matrix products.

    Shape:
        x (B, T, D), bias broadcast to (B, H, T, T) → (B, T, D) float32. With `at` (B, R), positions
        in [0, T): output at these positions only, (B, R, D), and bias broadcast to (B, H, R, T).
    """

    def __init__(
        self,
        *,
        hidden_dim: int,
        num_heads: int,
        intermediate_dim: int,
        dropout: float,
        activation: str,
        layer_norm_epsilon: float,
        norm_first: bool = False,
        residual_stddev: float = 0.02,
        dtype: str = "float32",
        name: str,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.norm_first = norm_first
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.attention = MultiHeadAttention(
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            dropout=dropout,
            output_stddev=residual_stddev,
            dtype=dtype,
        )
        self.attention_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, name="attention_norm", dtype="float32"
        )
        self.intermediate = ActivatedProjection(
            intermediate_dim, activation=activation, name="intermediate", dtype=dtype
        )
        self.output_projection = projection(
            hidden_dim, name="output", dtype=dtype, stddev=residual_stddev
        )
        self.output_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, name="output_norm", dtype="float32"
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype=dtype)

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        stream = (None, None, self.hidden_dim)
        self.attention.build(stream)
        self.attention_norm.build(stream)
        self.intermediate.build(stream)
        self.output_projection.build((None, None, self.intermediate_dim))
        self.output_norm.build(stream)
        self.built = True

    def call(self, x: Any, bias: Any = None, at: Any = None, training: bool | None = None) -> Any:
        """Run the block, at all positions or only `at` some."""
        seen = self.attention_norm(x) if self.norm_first else x
        asking = seen
        if at is not None:
            x, asking = gather_positions(x, at), gather_positions(seen, at)
        attended = self.attention(asking, seen, bias=bias, training=training)
        return self._after_attention(x, attended, training)

    def go_on(self, x: Any, past: Past | None, bias: Any = None) -> tuple[Any, Past]:
        """Run the block on tokens that continue a sequence.

        Args:
            x: The new tokens, (B, N, D).
            past: Keys and values at S places before them; None for none.
            bias: Broadcast to (B, H, N, S + N).

        Returns:
            Output at the new tokens, (B, N, D) float32, and their keys and values, (B, H, N, K).
        """
        seen = self.attention_norm(x) if self.norm_first else x
        key, value = self.attention.keys_and_values(seen)
        attended = self.attention.attend(seen, key, value, bias=bias, past=past)
        return self._after_attention(x, attended), (ops.transpose(key, (0, 1, 3, 2)), value)

    def _after_attention(self, x: Any, attended: Any, training: bool | None = None) -> Any:
        """Residual connections, LayerNorms and the feed-forward network."""
        attended = self.dropout(attended, training=training)
        x = x + ops.cast(attended, "float32")
        if not self.norm_first:
            x = self.attention_norm(x)
        inner = self.output_norm(x) if self.norm_first else x
        rows = ops.reshape(inner, (-1, self.hidden_dim))
        rows = self.intermediate(rows, training=training)  # (B · T, F)
        rows = self.dropout(self.output_projection(rows), training=training)  # (B · T, D)
        x = x + ops.cast(ops.reshape(rows, ops.shape(x)), "float32")
        return x if self.norm_first else self.output_norm(x)
