"""Attention by relative positions: what a score owes to position depends on the distance alone.

    score of query i for key j = ((q_i + u) · k_j + (q_i + v) · W_r R_{i-j} + s) / √K

u and v are biases by head, R_d is the sinusoid of distance d. XLNet adds s = (q_i + b) · e, where e
is one of two vectors by head, for keys of the query's own segment and for those of another one.

Reference:
    Dai et al. 2019, arXiv 1901.02860, 3.3 and appendix B (the shift); segments: Yang et al. 2019,
    arXiv 1906.08237, 2.5.
"""

from __future__ import annotations

from typing import Any

import keras

from models.keras_ops import ops
from models.layers.attention import NOT_SEEN, MultiHeadAttention, Past
from models.layers.projection import projection
from models.layers.slices import part


def sinusoids(distances: Any, width: int) -> Any:
    """The sinusoids of distances, sines first, then cosines, not interleaved.

    Args:
        distances: (N,), in tokens.
        width: D, even.

    Returns:
        (N, D) float32: sin(d / 10000^(2k/D)) for k = 0 … D/2 - 1, then the cosines.
    """
    rates = 1.0 / 10000.0 ** (ops.arange(0, width, 2, dtype="float32") / width)
    angles = ops.cast(distances, "float32")[:, None] * rates[None]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def distance_table(most: Any, least: Any, width: int, clamp: int = 0) -> Any:
    """The sinusoids of the distances most, most - 1, …, least.

    Args:
        most: S, the distance of the first row, a number or a scalar tensor.
        least: That of the last row: 0 where keys are never behind the query, else 1 - T.
        width: D, even.
        clamp: Distances beyond it count as it; 0 for no limit.

    Returns:
        (S - least + 1, D) float32.
    """
    distances = most - ops.arange(most - least + 1, dtype="int32")
    return sinusoids(ops.clip(distances, -clamp, clamp) if clamp else distances, width)


def relative_shift(scores: Any, keys: Any) -> Any:
    """From scores by distance to scores by key, for queries at the last T of S positions.

    Column c of the input stands for distance S - c, and query i stands at position S - T + i. So
    key j is in column j + T - i: each row is shifted by one against the row before. Reading the
    same numbers as a matrix of one column less does that without a look-up.

    Args:
        scores: (B, H, T, N), N > S; keys behind the query need N ≥ S + T.
        keys: S.

    Returns:
        (B, H, T, S). Without N ≥ S + T, entries of keys behind the query mean nothing.
    """
    rows, heads, queries, columns = ops.shape(scores)
    turned = part(ops.reshape(scores, (rows, heads, columns, queries)), 1, axis=2)
    return part(ops.reshape(turned, (rows, heads, queries, columns - 1)), 0, keys, axis=3)


def shifted_at(scores: Any, positions: Any, queries: Any, keys: Any) -> Any:
    """As `relative_shift`, for queries at some of the T positions.

    Args:
        scores: (B, H, R, N), of distance S - c in column c.
        positions: (B, R) int32 in [0, T).
        queries: T.
        keys: S.

    Returns:
        (B, H, R, S).
    """
    columns = ops.arange(keys, dtype="int32") + queries - positions[:, :, None]  # (B, R, S)
    columns = ops.broadcast_to(columns[:, None], (*ops.shape(scores)[:3], keys))
    return ops.take_along_axis(scores, columns, axis=-1)


def found_at(scores: Any, distances: Any) -> Any:
    """As `relative_shift`, for keys that stand anywhere.

    Args:
        scores: (B, H, T, S + 1), of distance S - c in column c.
        distances: (B, T, S) int32, from a query back to each key; what is out of range is that of
            keys that are hidden, and means nothing.

    Returns:
        (B, H, T, S).
    """
    most = ops.shape(scores)[3] - 1
    columns = ops.clip(most - distances, 0, most)[:, None]
    columns = ops.broadcast_to(columns, (*ops.shape(scores)[:3], ops.shape(distances)[2]))
    return ops.take_along_axis(scores, columns, axis=-1)


class HeadBiases(keras.layers.Layer):
    """The biases u and v of all queries, by head; of one layer, or shared by all of them.

    Args:
        num_heads: H.
        head_dim: K.
    """

    def __init__(self, num_heads: int, head_dim: int, name: str = "biases"):
        super().__init__(name=name, dtype="float32", autocast=False)
        self.shape_of_each = (num_heads, head_dim)

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.content, self.position = (
            self.add_weight(
                shape=self.shape_of_each, initializer=_initial(), name=name, autocast=False
            )
            for name in ("content_bias", "position_bias")
        )
        self.built = True

    @property
    def values(self) -> tuple[Any, Any]:
        """U and v, (H, K) each."""
        return ops.convert_to_tensor(self.content), ops.convert_to_tensor(self.position)


class RelativeAttention(MultiHeadAttention):
    """Multi-head attention by relative positions; none of its projections has a bias.

    Args:
        hidden_dim: Width of the output, a multiple of `num_heads`.
        num_heads: Number of heads.
        own_biases: Whether it has u and v of its own; else they are given.
        by_segment: Whether keys of the query's own segment and those of others score differently.
        arguments: Those of `MultiHeadAttention`.

    Shape:
        `attend`: x (B, T, D), keys (B, H, K, S), values (B, H, S, K), table (N, D) → (B, T, D).
    """

    def __init__(
        self,
        *,
        hidden_dim: int,
        num_heads: int,
        own_biases: bool,
        by_segment: bool,
        dtype: str = "float32",
        **arguments: Any,
    ):
        arguments |= {"hidden_dim": hidden_dim, "num_heads": num_heads, "use_bias": False}
        super().__init__(dtype=dtype, **arguments)
        self.relative = projection(hidden_dim, name="relative", dtype=dtype, use_bias=False)
        self.biases = HeadBiases(num_heads, self.head_dim) if own_biases else None
        self.by_segment = by_segment

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        self.relative.build((None, None, self.hidden_dim))
        if self.biases is not None:
            self.biases.build()
        if self.by_segment:
            by_head = (self.num_heads, self.head_dim)
            # The variables' autocast would round them to bfloat16 before they are added.
            self.segment_bias = self.add_weight(
                shape=by_head, initializer=_initial(), name="segment_bias", autocast=False
            )
            self.segment_vectors = self.add_weight(
                shape=(2, *by_head), initializer=_initial(), name="segment_vectors", autocast=False
            )
        super().build(input_shape)

    def attend(
        self,
        x: Any,
        key: Any = None,
        value: Any = None,
        bias: Any = None,
        past: Past | None = None,
        training: bool | None = None,
        *,
        table: Any = None,
        biases: tuple[Any, Any] | None = None,
        differ: Any = None,
        distances: Any = None,
        at: Any = None,
        queries: Any = None,
    ) -> Any:
        """Attend from `x` to what `keys_and_values` gives, and to what was kept before.

        Args:
            x: The queries, (B, T, D): the last T of S positions.
            key: (B, H, K, S), without those of `past`.
            value: (B, H, S, K), without those of `past`.
            bias: Added to the scores; broadcast to (B, H, T, S).
            past: What was kept of the first of the S positions; None for nothing.
            training: Whether there is dropout.
            table: (N, D) float32, of `distance_table` from distance S on.
            biases: u and v, (H, K) each; None for its own.
            differ: (B, T, S) float32, 1 where a key is of another segment than the query; None
                where all are of one.
            distances: (B, T, S) int32, from each query back to the keys; None for keys that stand
                one after another.
            at: (B, R) int32 positions of the queries in [0, T), where `x` (B, R, D) are some of
                them; None for all. Of these, a query that sees nothing gets zeros.
            queries: T, with `at`.
        """
        size, rows = ops.shape(x)[:2], ops.reshape(x, (-1, self.hidden_dim))
        query = self._by_head(self.query(rows), size)  # (B, H, T, K)
        own = self.biases.values if self.biases is not None else biases
        assert own is not None, "biases are given, or the layer's own"
        content, position = own

        scores = self._scores(self._with(query, content), key, past)  # (B, H, T, S)
        count = ops.shape(scores)[3]
        near = self._by_distance(self._with(query, position), table)  # (B, H, T, N)
        if distances is not None:
            near = found_at(near, distances)
        elif at is not None:
            near = shifted_at(near, at, queries, count)
        else:
            near = relative_shift(near, count)
        scores = scores + near
        if differ is not None:
            vectors = ops.transpose(self._cast(self.segment_vectors), (1, 2, 0))  # (H, K, 2)
            # (B, H, T, 2): the same segment, another one
            kinds = _by_head(self._with(query, self.segment_bias), vectors)
            step = (kinds[..., 1] - kinds[..., 0])[..., None]
            scores = scores + kinds[..., :1] + step * differ[:, None]
        mixed = self._mix(scores, value, bias, past, training)
        if at is None or bias is None:
            return mixed
        # The first token of an order may see nothing. Softmax would then give all keys, which it
        # must not see, the same weight.
        sees = ops.cast(ops.max(bias, axis=(1, 3)) > 0.5 * NOT_SEEN, mixed.dtype)  # (B, R)
        return mixed * sees[:, :, None]

    def _with(self, query: Any, bias: Any) -> Any:
        """Queries with a bias by head, scaled: (B, H, T, K) + (H, K)."""
        return (query + self._cast(bias)[None, :, None]) * self.head_dim**-0.5

    def _by_distance(self, query: Any, table: Any) -> Any:
        """Queries (B, H, T, K) times W_r R, the keys of distances: (B, H, T, N) float32."""
        table = self._cast(table)
        if query.shape[2] == 1 and self.relative.beside is None:
            # One query: (q W_r) R has a thousandth of the products of q (W_r R).
            kernel = ops.reshape(self.relative.kernel, (-1, self.num_heads, self.head_dim))
            kernel = ops.transpose(self._cast(kernel), (1, 2, 0))  # (H, K, D)
            wide = ops.matmul(ops.transpose(query[:, :, 0], (1, 0, 2)), kernel)  # (H, B, D)
            near = ops.matmul(ops.reshape(wide, (-1, self.hidden_dim)), ops.transpose(table))
            near = ops.reshape(near, (self.num_heads, -1, 1, ops.shape(table)[0]))
            return ops.cast(ops.transpose(near, (1, 0, 2, 3)), "float32")
        keys = ops.reshape(self.relative(table), (-1, self.num_heads, self.head_dim))  # (N, H, K)
        return _by_head(query, ops.transpose(keys, (1, 2, 0)))

    def _cast(self, value: Any) -> Any:
        return ops.cast(value, self.compute_dtype)


def _by_head(query: Any, keys: Any) -> Any:
    """(B, H, T, K) times (H, K, N), the same for all rows: (B, H, T, N) float32.

    The copies are on purpose. TensorFlow's product of matrices that broadcasts by itself writes
    beyond its memory on CPU where there is one head (2.21).
    """
    every = ops.broadcast_to(keys[None], (ops.shape(query)[0], *ops.shape(keys)))
    return ops.cast(ops.matmul(query, every), "float32")


def _initial() -> Any:
    """A new one for each variable: one initializer draws the same numbers each time."""
    return keras.initializers.TruncatedNormal(stddev=0.02)
