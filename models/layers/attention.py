"""Multi-head scaled dot-product attention (Vaswani et al. 2017, arXiv 1706.03762, 3.2)."""

from __future__ import annotations

from typing import Any

import keras

from models.layers.projection import projection

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

# Keys and values of one layer at S places, (P, H, S, K) each. P divides the rows of a batch: rows
# that follow one another may share them, as the hypotheses of one text do.
Past = tuple[Any, Any]

# Far below any score but finite: a fully masked row gets uniform weights instead of NaN.
NOT_SEEN = -1e9


def bias_from_padding(padding_mask: Any) -> Any:
    """Additive attention bias that masks padding.

    Args:
        padding_mask: (B, T), 1 = token, 0 = padding.

    Returns:
        (B, 1, 1, T) float32, 0 or `NOT_SEEN`.
    """
    hidden = 1.0 - ops.cast(padding_mask, "float32")
    return (hidden * NOT_SEEN)[:, None, None, :]


def causal_bias(length: Any, before: Any = 0) -> Any:
    """Additive attention bias that hides what comes later.

    Args:
        length: T, a number or a scalar tensor.
        before: S, tokens before the first row that are seen by all.

    Returns:
        (1, 1, T, S + T) float32: 0 where column j is not after row i, j ≤ S + i, else `NOT_SEEN`.
    """
    column = ops.arange(before + length, dtype="int32")
    row = ops.arange(length, dtype="int32") + before
    later = ops.cast(column[None, :] > row[:, None], "float32")
    return (later * NOT_SEEN)[None, None]


def shared_product(x: Any, shared: Any) -> Any:
    """Matrix products of rows with what they share, which is read once and not repeated.

    Args:
        x: (B, H, T, X).
        shared: (P, H, X, Y), where P divides B; rows b · B / P up to the next such row share b.

    Returns:
        (B, H, T, Y).
    """
    rows, heads, length, width = ops.shape(x)
    owners = ops.shape(shared)[0]
    each = rows // owners
    x = ops.transpose(ops.reshape(x, (owners, each, heads, length, width)), (0, 2, 1, 3, 4))
    found = ops.matmul(ops.reshape(x, (owners, heads, each * length, width)), shared)
    found = ops.reshape(found, (owners, heads, each, length, ops.shape(shared)[3]))
    return ops.reshape(ops.transpose(found, (0, 2, 1, 3, 4)), (rows, heads, length, -1))


class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention, from a sequence to itself or to a memory.

    Args:
        hidden_dim: Width of the output, a multiple of `num_heads`.
        num_heads: Number of heads.
        dropout: Dropout rate of the attention weights, 0-1.
        output_stddev: Standard deviation of the output projection's initial kernel.
        dtype: Dtype policy of the matrix products; the softmax is always float32.

    Shape:
        x (B, T, D), memory (B, S, D) or None for self-attention, bias broadcast to (B, H, T, S)
        → (B, T, D).
    """

    def __init__(
        self,
        *,
        hidden_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        output_stddev: float = 0.02,
        dtype: str = "float32",
        name: str = "attention",
    ):
        # autocast would round the additive bias to bfloat16 on entry.
        super().__init__(name=name, dtype=dtype, autocast=False)
        if hidden_dim % num_heads:
            raise ValueError(
                f"hidden_dim must be a multiple of num_heads, got {hidden_dim} and {num_heads}"
            )
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.head_dim = hidden_dim // num_heads
        self.query = projection(hidden_dim, name="query", dtype=dtype)
        self.key = projection(hidden_dim, name="key", dtype=dtype)
        self.value = projection(hidden_dim, name="value", dtype=dtype)
        self.output_projection = projection(
            hidden_dim, name="output", dtype=dtype, stddev=output_stddev
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype=dtype)

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        for layer in (self.query, self.key, self.value, self.output_projection):
            layer.build((None, None, self.hidden_dim))
        self.built = True

    def _by_head(self, rows: Any, size: Any, order: tuple[int, ...] = (0, 2, 1, 3)) -> Any:
        """(B · T, D) → (B, H, T, K), or another order of (B, T, H, K); `size` is (B, T)."""
        x = ops.reshape(rows, (*size, self.num_heads, self.head_dim))
        return ops.transpose(x, order)

    def call(
        self, x: Any, memory: Any = None, bias: Any = None, training: bool | None = None
    ) -> Any:
        """Attend from `x` to `memory`, or to itself."""
        key, value = self.keys_and_values(x if memory is None else memory)
        return self.attend(x, key, value, bias=bias, training=training)

    def keys_and_values(self, memory: Any) -> tuple[Any, Any]:
        """What of a memory (B, S, D) is attended to: (B, H, K, S) and (B, H, S, K)."""
        # Vectors are in rows until they have heads: the fewer shapes, the faster a small network.
        size, rows = ops.shape(memory)[:2], ops.reshape(memory, (-1, self.hidden_dim))
        key = self._by_head(self.key(rows), size, (0, 2, 3, 1))
        return key, self._by_head(self.value(rows), size)

    def attend(
        self,
        x: Any,
        key: Any,
        value: Any,
        bias: Any = None,
        past: Past | None = None,
        training: bool | None = None,
    ) -> Any:
        """Attend from `x` to what `keys_and_values` gives.

        Args:
            x: (B, T, D).
            key: (B, H, K, S).
            value: (B, H, S, K).
            bias: Broadcast to (B, H, T, R + S).
            past: What is attended to before the rest, at R places; None for nothing.
            training: Whether there is dropout.
        """
        size, rows = ops.shape(x)[:2], ops.reshape(x, (-1, self.hidden_dim))
        query = self._by_head(self.query(rows) * self.head_dim**-0.5, size)  # (B, H, T, K)

        scores = ops.matmul(query, key)  # (B, H, T, S)
        if past is not None:
            before = shared_product(query, ops.transpose(past[0], (0, 1, 3, 2)))
            scores = ops.concatenate([before, scores], axis=-1)
        scores = ops.cast(scores, "float32")
        if bias is not None:
            scores = scores + bias
        weights = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        weights = self.dropout(weights, training=training)

        if past is None:
            mixed = ops.matmul(weights, value)
        else:
            places = ops.shape(past[1])[2]
            mixed = shared_product(weights[..., :places], past[1])
            mixed = mixed + ops.matmul(weights[..., places:], value)
        mixed = ops.transpose(mixed, (0, 2, 1, 3))  # (B, T, H, K)
        mixed = self.output_projection(ops.reshape(mixed, (-1, self.hidden_dim)))
        return ops.reshape(mixed, (*size, self.hidden_dim))  # (B, T, D)
