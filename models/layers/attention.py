"""Multi-head scaled dot-product attention (Vaswani et al. 2017, arXiv 1706.03762, 3.2)."""

from __future__ import annotations

from typing import Any

import keras

from models.keras_ops import ops
from models.layers.projection import projection

# Keys and values of one layer at S places, (B, H, S, K) each.
Past = tuple[Any, Any]

# Far below any score but finite: a fully masked row gets uniform weights instead of NaN.
NOT_SEEN = -1e9

# Tokens are written one at a time. oneDNN, which computes TensorFlow's usual operations, prepares a
# product, a softmax or a transposition of so small tensors for longer than it computes them. Where
# tensors are known to be small, others are taken below. The transposition gives the same bits.
SMALL = 4096  # multiplications


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


def banded_bias(asking: Any, seen: Any, width: int) -> Any:
    """Additive attention bias that hides what is far before.

    Args:
        asking: (B, T) positions that attend.
        seen: (B, S) positions that are attended to.
        width: Positions that each one sees of those up to itself, itself included, from 1.

    Returns:
        (B, 1, T, S) float32: `NOT_SEEN` where a position is `width` or more before, else 0.
    """
    far = asking[:, :, None] - seen[:, None, :] >= width
    return (ops.cast(far, "float32") * NOT_SEEN)[:, None]


def as_past(key: Any, value: Any) -> Past:
    """Keys and values of an attention, (B, H, K, S) and (B, H, S, K), as they are kept."""
    return ops.transpose(key, (0, 1, 3, 2)), value


def _product(left: Any, right: Any, transposed: bool = False) -> Any:
    """Products of matrices (…, M, N) and (…, N, R), or (…, R, N) that are `transposed`."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        inner, columns = right.shape[-2:][::-1] if transposed else right.shape[-2:]
        if left.dtype == "float32" and _is_little(left.shape[-2], inner, columns):
            return tf.raw_ops.BatchMatMulV3(x=left, y=right, adj_y=transposed, Tout=tf.float32)
        return tf.matmul(left, right, transpose_b=transposed)
    return ops.matmul(left, ops.swapaxes(right, -1, -2) if transposed else right)


def _is_little(rows: int | None, inner: int | None, columns: int | None) -> bool:
    """Whether it is known that a matrix is a vector, or that both are small."""
    if rows == 1 or columns == 1:
        return True
    if rows is None or inner is None or columns is None:
        return False
    return rows * inner * columns <= SMALL


def _softmax(scores: Any) -> Any:
    """The softmax of (B, H, T, S)."""
    if scores.shape[2] != 1:
        return ops.softmax(scores, axis=-1)
    powers = ops.exp(scores - ops.max(scores, axis=-1, keepdims=True))
    return powers / ops.sum(powers, axis=-1, keepdims=True)


def _swapped(x: Any) -> Any:
    """(B, T, H, K) → (B, H, T, K), or back."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.raw_ops.Einsum(inputs=[x], equation="bthk->bhtk")
    return ops.transpose(x, (0, 2, 1, 3))


def size_of(x: Any) -> tuple[Any, Any]:
    """(B, T) of a tensor, for a new shape; -1 for B where T is known, which takes no operation."""
    return ops.shape(x)[:2] if x.shape[1] is None else (-1, x.shape[1])


class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention, from a sequence to itself or to a memory.

    Args:
        hidden_dim: Width of the output, a multiple of `num_heads`.
        num_heads: Number of heads.
        dropout: Dropout rate of the attention weights, 0-1.
        head_dim: K, width per head; None for hidden_dim / num_heads.
        stddev: Standard deviation of the initial kernels (`models.layers.projection`).
        output_stddev: That of the output projection.
        scaled: Whether scores are multiplied by 1/√K. Without it, the query's initial kernel is
            smaller by that factor; its `stddev` must be None.
        use_bias: Whether the four projections have biases.
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
        head_dim: int | None = None,
        stddev: float | None = 0.02,
        output_stddev: float | None = 0.02,
        scaled: bool = True,
        use_bias: bool = True,
        dtype: str = "float32",
        name: str = "attention",
    ):
        # autocast would round the additive bias to bfloat16 on entry.
        super().__init__(name=name, dtype=dtype, autocast=False)
        if head_dim is None and hidden_dim % num_heads:
            raise ValueError(
                f"hidden_dim must be a multiple of num_heads, got {hidden_dim} and {num_heads}"
            )
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.head_dim = head_dim or hidden_dim // num_heads
        self.inner_dim = num_heads * self.head_dim
        self.scaled = scaled
        of_input: dict[str, Any] = {"dtype": dtype, "stddev": stddev, "use_bias": use_bias}
        gain = 1.0 if scaled else 1.0 / self.head_dim
        self.query = projection(self.inner_dim, name="query", gain=gain, **of_input)
        self.key = projection(self.inner_dim, name="key", **of_input)
        self.value = projection(self.inner_dim, name="value", **of_input)
        self.output_projection = projection(
            hidden_dim, name="output", dtype=dtype, stddev=output_stddev, use_bias=use_bias
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype=dtype)

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        for layer in (self.query, self.key, self.value):
            layer.build((None, None, self.hidden_dim))
        self.output_projection.build((None, None, self.inner_dim))
        self.built = True

    def _by_head(self, rows: Any, size: Any) -> Any:
        """(B · T, H · K) → (B, H, T, K); `size` is (B, T)."""
        return _swapped(ops.reshape(rows, (*size, self.num_heads, self.head_dim)))

    def call(
        self, x: Any, memory: Any = None, bias: Any = None, training: bool | None = None
    ) -> Any:
        """Attend from `x` to `memory`, or to itself."""
        key, value = self.keys_and_values(x if memory is None else memory)
        return self.attend(x, key, value, bias=bias, training=training)

    def keys_and_values(self, memory: Any) -> tuple[Any, Any]:
        """What of a memory (B, S, D) is attended to: (B, H, K, S) and (B, H, S, K)."""
        # Vectors are in rows until they have heads: the fewer shapes, the faster a small network.
        size, rows = size_of(memory), ops.reshape(memory, (-1, self.hidden_dim))
        key = ops.reshape(self.key(rows), (*size, self.num_heads, self.head_dim))
        return ops.transpose(key, (0, 2, 3, 1)), self._by_head(self.value(rows), size)

    def attend(
        self,
        x: Any,
        key: Any = None,
        value: Any = None,
        bias: Any = None,
        past: Past | None = None,
        training: bool | None = None,
    ) -> Any:
        """Attend from `x` to what `keys_and_values` gives, and to what was kept before.

        Args:
            x: (B, T, D).
            key: (B, H, K, S); None for nothing beside `past`.
            value: (B, H, S, K), or None as the keys.
            bias: Broadcast to (B, H, T, R + S).
            past: What is attended to before the rest, at R places; None for nothing.
            training: Whether there is dropout.
        """
        size, rows = size_of(x), ops.reshape(x, (-1, self.hidden_dim))
        query = self.query(rows)
        if self.scaled:
            query = query * self.head_dim**-0.5
        scores = self._scores(self._by_head(query, size), key, past)
        return self._mix(scores, value, bias, past, training)

    def _scores(self, query: Any, key: Any, past: Past | None) -> Any:
        """Scores of queries (B, H, T, K) for what was kept and for `key`, (B, H, T, R + S)."""
        parts = [] if past is None else [_product(query, past[0], transposed=True)]
        if key is not None:
            parts.append(_product(query, key) if parts else ops.matmul(query, key))
        scores = parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=-1)
        return ops.cast(scores, "float32")

    def _mix(
        self, scores: Any, value: Any, bias: Any, past: Past | None, training: bool | None
    ) -> Any:
        """The values, weighted by the softmax of the scores (B, H, T, R + S), and projected."""
        if bias is not None:
            scores = scores + bias
        weights = ops.cast(_softmax(scores), self.compute_dtype)
        weights = self.dropout(weights, training=training)

        if past is None:
            mixed = ops.matmul(weights, value)  # (B, H, T, K)
        elif value is None:
            mixed = _product(weights, past[1])
        else:
            own = ops.shape(value)[2]
            mixed = _product(weights[..., :-own], past[1]) + _product(weights[..., -own:], value)
        mixed = _swapped(mixed)  # (B, T, H, K)
        size = size_of(mixed)
        mixed = self.output_projection(ops.reshape(mixed, (-1, self.inner_dim)))
        return ops.reshape(mixed, (*size, self.hidden_dim))  # (B, T, D)
