"""Transformer blocks: attention and a feed-forward network, each with a residual connection."""

from __future__ import annotations

from functools import partial
from typing import Any

import keras

from fourstage.errors import UnknownNameError
from models.keras_ops import ops
from models.layers.activation import IN_BLOCKS
from models.layers.attention import MultiHeadAttention, Past, as_past, size_of
from models.layers.gather import gather_positions
from models.layers.norm import norm_layer
from models.layers.projection import ActivatedProjection, projection


class ResidualBlock(keras.layers.Layer):
    """What blocks are made of: self-attention and a feed-forward network, each with a norm.

        post-LN (BERT, GPT)     x ← norm(x + f(x))
        pre-LN (GPT-2, T5)      x ← x + f(norm(x))

    The residual stream and both norms are always float32; only the matrix products use the
    compute dtype.

    Args:
        hidden_dim: Width of the residual stream.
        num_heads: Number of attention heads.
        intermediate_dim: Width of the feed-forward network's inner layer.
        dropout: Dropout rate of the attention weights and of both residual branches, 0-1.
        activation: Name of the feed-forward activation.
        layer_norm_epsilon: Added to the variance: 1e-12 BERT, 1e-5 RoBERTa, BART and GPT, 1e-6 T5.
        norm_first: Whether the norm precedes (pre-LN) instead of following (post-LN).
        stddev: Standard deviation of the initial kernels (`models.layers.projection`).
        residual_stddev: That of the kernels that write to the residual stream.
        head_dim: Width per head; None for hidden_dim / num_heads.
        scaled: Whether attention scores are multiplied by 1/√K.
        use_bias: Whether projections have biases.
        rms: Whether norms are by the root mean square alone (`models.layers.norm`).
        gated: Whether the feed-forward network's inner layer is multiplied by a second, linear one.
        inner_dropout: Whether there is dropout on that layer, too.
        dtype: Dtype policy of the matrix products.

    Raises:
        UnknownNameError: Blocks have no such activation.
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
        stddev: float | None = 0.02,
        residual_stddev: float | None = 0.02,
        head_dim: int | None = None,
        scaled: bool = True,
        use_bias: bool = True,
        rms: bool = False,
        gated: bool = False,
        inner_dropout: bool = False,
        dtype: str = "float32",
        name: str,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        if activation not in IN_BLOCKS:
            raise UnknownNameError(
                "size: activation", activation, "an activation of blocks", IN_BLOCKS
            )
        self.norm_first = norm_first
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.inner_dropout = inner_dropout
        self.make_attention = partial(
            self.attention_of,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            dropout=dropout,
            head_dim=head_dim,
            stddev=stddev,
            output_stddev=residual_stddev,
            scaled=scaled,
            use_bias=use_bias,
            dtype=dtype,
        )
        self.make_norm = partial(norm_layer, epsilon=layer_norm_epsilon, rms=rms)
        inner: dict[str, Any] = {"stddev": stddev, "use_bias": use_bias, "dtype": dtype}
        self.attention = self.make_attention(name="attention")
        self.attention_norm = self.make_norm("attention_norm")
        self.intermediate = ActivatedProjection(
            intermediate_dim, activation=activation, name="intermediate", **inner
        )
        self.gate = projection(intermediate_dim, name="gate", **inner) if gated else None
        self.output_projection = projection(
            hidden_dim, name="output", dtype=dtype, stddev=residual_stddev, use_bias=use_bias
        )
        self.output_norm = self.make_norm("output_norm")
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype=dtype)

    def attention_of(self, **arguments: Any) -> Any:
        """An attention; of its own kind in a subclass."""
        return MultiHeadAttention(**arguments)

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        stream = (None, None, self.hidden_dim)
        self.attention.build(stream)
        self.attention_norm.build(stream)
        self.intermediate.build(stream)
        if self.gate is not None:
            self.gate.build(stream)
        self.output_projection.build((None, None, self.intermediate_dim))
        self.output_norm.build(stream)
        self.built = True

    def _before(self, x: Any, norm: Any) -> Any:
        """What a part reads of the stream."""
        return norm(x) if self.norm_first else x

    def _after(self, x: Any, part: Any, norm: Any) -> Any:
        """The stream with what a part adds to it, float32."""
        x = x + ops.cast(part, "float32")
        return x if self.norm_first else norm(x)

    def _attended(self, x: Any, attended: Any, norm: Any, training: bool | None) -> Any:
        """The stream after an attention."""
        return self._after(x, self.dropout(attended, training=training), norm)

    def _feed_forward(self, x: Any, training: bool | None) -> Any:
        """The stream after the feed-forward network."""
        rows = ops.reshape(self._before(x, self.output_norm), (-1, self.hidden_dim))
        inner = self.intermediate(rows, training=training)  # (B · T, F)
        if self.gate is not None:
            inner = inner * self.gate(rows, training=training)
        if self.inner_dropout:
            inner = self.dropout(inner, training=training)
        rows = self.dropout(self.output_projection(inner), training=training)  # (B · T, D)
        return self._after(x, ops.reshape(rows, (*size_of(x), self.hidden_dim)), self.output_norm)


class TransformerBlock(ResidualBlock):
    """A block that attends to itself.

    Shape:
        x (B, T, D), bias broadcast to (B, H, T, T) → (B, T, D) float32. With `at` (B, R), positions
        in [0, T): output at these positions only, (B, R, D), and bias broadcast to (B, H, R, T).
    """

    def call(self, x: Any, bias: Any = None, at: Any = None, training: bool | None = None) -> Any:
        """Run the block, at all positions or only `at` some."""
        seen = asking = self._before(x, self.attention_norm)
        if at is not None:
            x, asking = gather_positions(x, at), gather_positions(seen, at)
        places = self.places(at)
        attended = self.attention(asking, seen, bias=bias, training=training, **places)
        return self._after_attention(x, attended, training)

    def places(self, at: Any) -> dict[str, Any]:
        """What attention has to know of where it is asked, for kinds that know positions."""
        return {}

    def go_on(self, x: Any, past: Past | None, bias: Any = None) -> tuple[Any, Past]:
        """Run the block on tokens that continue a sequence.

        Args:
            x: The new tokens, (B, N, D).
            past: Keys and values at S places before them; None for none.
            bias: Broadcast to (B, H, N, S + N).

        Returns:
            Output at the new tokens, (B, N, D) float32, and their keys and values, (B, H, N, K).
        """
        seen = self._before(x, self.attention_norm)
        key, value = self.attention.keys_and_values(seen)
        attended = self.attention.attend(seen, key, value, bias=bias, past=past)
        return self._after_attention(x, attended), as_past(key, value)

    def _after_attention(self, x: Any, attended: Any, training: bool | None = None) -> Any:
        """The stream after attention and the feed-forward network."""
        x = self._attended(x, attended, self.attention_norm, training)
        return self._feed_forward(x, training)
