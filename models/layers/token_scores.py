"""Cross-entropy of tokens, without the logits of all positions at once.

A training step of B × T positions would hold their B · T · V logits, the probabilities and their
gradient. Here the gradient is computed with the loss, for some positions at a time:

    p = softmax(h Eᵀ + b),  nats = -Σ_v q_v log p_v,  ∂/∂logits = w (p - q)
    ∂h = w (p - q) E,  ∂E = Σ (w (p - q))ᵀ h,  ∂b = Σ w (p - q)

with q the label, with label smoothing a mixture. No product is computed twice.

Where only loss and accuracy are wanted, as on held-out text, the logits of a chunk are dropped with
it. That is on TensorFlow's CPU; a step that XLA compiles whole, on a GPU or by JAX, has the logits
of all its positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.loss import cross_entropy

# Positions at a time, so that their logits have at most so many values, 134 MB. With fewer, more
# time goes into adding up the gradient of the table, once for each chunk.
LARGEST = 2**25
FEWEST, MOST = 256, 2048


def kernel_of(table: Any, compute_dtype: str) -> Any:
    """A token embedding, (V, E), as the kernel (E, V) of a dense layer, in the product's dtype."""
    return ops.transpose(ops.cast(table, compute_dtype))


def tied_logits(
    hidden: Any,
    table: Any,
    bias: Any,
    compute_dtype: str,
    scale: float | None = None,
    kernel: Any = None,
) -> Any:
    """Logits of all tokens: product with the token embedding, plus a bias.

    Args:
        hidden: (…, E).
        table: The token embedding, (V, E).
        bias: (V,), or None for none.
        compute_dtype: Dtype of the product.
        scale: The network's ``output_scale``: factor on `hidden`; None for 1.
        kernel: `kernel_of` the table, where it is at hand. TensorFlow multiplies a few rows faster
            with it than with a table that it has to transpose.

    Returns:
        (…, V) float32.
    """
    if scale is not None:
        hidden = hidden * scale
    if kernel is None:
        kernel = kernel_of(table, compute_dtype)
    logits = ops.matmul(ops.cast(hidden, compute_dtype), kernel)
    logits = ops.cast(logits, "float32")
    return logits if bias is None else logits + bias


def token_scores(
    hidden: Any,
    table: Any,
    bias: Any,
    labels: Any,
    weights: Any,
    compute_dtype: str,
    scale: float | None = None,
    *,
    training: bool | None,
    spread: float = 0.0,
    never: int = 0,
) -> dict[str, tuple[Any, Any]]:
    """Cross-entropy and accuracy of tokens that are predicted by `tied_logits`.

    Args:
        hidden: (…, E).
        table: (V, E).
        bias: (V,), or None.
        labels: (…) int32 in [0, V).
        weights: (…) loss weights, 0 where a position does not count.
        compute_dtype: Dtype of the products.
        scale: Factor on `hidden`; None for 1.
        training: Whether the gradient is wanted.
        spread: Label smoothing: probability that the label gives to the others, 0-1.
        never: The token that gets none of it.

    Returns:
        {"loss": (Σ w·nats, Σ w), "accuracy": (Σ w·[hit], Σ w)} in float32; a tie for the highest
        logit is a hit.

    Reference:
        Szegedy et al. 2016, arXiv 1512.00567, 7 (label smoothing).
    """
    if not _in_chunks() or not (training or _are_many(labels, table)):
        logits = tied_logits(hidden, table, bias, compute_dtype, scale)
        scores = cross_entropy(logits, labels, weights)
        if spread:
            scores["loss"] = _smoothed(scores["loss"], logits, weights, spread, never)
        return scores
    if scale is not None:
        hidden = hidden * scale
    size = table.shape[0]
    states = ops.cast(ops.reshape(hidden, (-1, table.shape[1])), compute_dtype)
    weights = ops.cast(ops.reshape(weights, (-1,)), "float32")
    chunked = _learned if training else _measured
    nats, hits = chunked(spread, never)(
        states,
        ops.cast(table, compute_dtype),
        ops.zeros((size,), "float32") if bias is None else ops.cast(bias, "float32"),
        ops.cast(ops.reshape(labels, (-1,)), "int32"),
        weights,
    )
    total = ops.sum(weights)
    return {"loss": (nats, total), "accuracy": (hits, total)}


def _smoothed(loss: Any, logits: Any, weights: Any, spread: float, never: int) -> Any:
    nats, total = loss
    log_p = ops.log_softmax(logits, axis=-1)
    others = ops.sum(log_p, axis=-1) - log_p[..., never]
    others = -ops.sum(ops.cast(weights, "float32") * others) / (log_p.shape[-1] - 1)
    return (1.0 - spread) * nats + spread * others, total


def _in_chunks() -> bool:
    """On TensorFlow's CPU; JAX and GPUs compile the whole step, with shapes that are known."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return not tf.config.list_physical_devices("GPU")


def _are_many(labels: Any, table: Any) -> bool:
    """Whether all logits are more than those of a chunk, or may be."""
    if any(size is None for size in labels.shape):
        return True
    return math.prod(labels.shape) * table.shape[0] > LARGEST


def _size(table: Any) -> int:
    """Positions of a chunk."""
    return max(FEWEST, min(MOST, LARGEST // table.shape[0]))


def _part(i: Any, size: int, rows: Any) -> slice:
    """The positions of chunk i."""
    import tensorflow as tf

    return slice(i * size, tf.minimum((i + 1) * size, rows))


def _logits(states: Any, table: Any, bias: Any) -> Any:
    """(N, V) float32."""
    import tensorflow as tf

    return tf.cast(tf.matmul(states, table, transpose_b=True), tf.float32) + bias


def _terms(logits: Any, labels: Any, spread: float, never: int) -> tuple[Any, Any, Any, Any]:
    """Nats (N,), [hit] (N,), and of the softmax its numerators (N, V) and denominators (N,)."""
    import tensorflow as tf

    top = tf.reduce_max(logits, axis=-1)
    powers = tf.exp(logits - top[:, None])
    total = tf.reduce_sum(powers, axis=-1)
    own = tf.gather(logits, labels, batch_dims=1)
    wanted = (1.0 - spread) * own
    if spread:
        each = spread / (logits.shape[-1] - 1)
        wanted += each * (tf.reduce_sum(logits, axis=-1) - logits[:, never])
    return tf.math.log(total) + top - wanted, tf.cast(own >= top, tf.float32), powers, total


@cache
def _measured(spread: float, never: int) -> Callable[..., Any]:
    """(states (N, E), table (V, E), bias (V,), labels, weights (N,)) → (Σ w·nats, Σ w·[hit])."""
    import tensorflow as tf

    def measured(states: Any, table: Any, bias: Any, labels: Any, weights: Any) -> Any:
        rows, size = tf.shape(states)[0], _size(table)

        def one(i: Any, nats: Any, hits: Any) -> Any:
            part = _part(i, size, rows)
            logits = _logits(states[part], table, bias)
            more, more_hits, *_ = _terms(logits, labels[part], spread, never)
            nats += tf.reduce_sum(weights[part] * more)
            return i + 1, nats, hits + tf.reduce_sum(weights[part] * more_hits)

        _, nats, hits = tf.while_loop(
            lambda i, *_: i * size < rows,
            one,
            (0, 0.0, 0.0),
            parallel_iterations=1,  # one chunk's logits at a time
        )
        return nats, hits

    return measured


@cache
def _learned(spread: float, never: int) -> Callable[..., Any]:
    """As `_measured`, with the gradient."""
    import tensorflow as tf

    def scored(logits: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
        nats, hits, powers, total = _terms(logits, labels, spread, never)
        gradient = powers * (weights / total)[:, None]  # w p
        if spread:
            each = spread / (logits.shape[-1] - 1)
            gradient -= (each * weights)[:, None]
            gradient = _less(gradient, tf.fill(tf.shape(labels), never), -each * weights)
        gradient = _less(gradient, labels, (1.0 - spread) * weights)
        return gradient, tf.reduce_sum(weights * nats), tf.reduce_sum(weights * hits)

    @tf.custom_gradient
    def chunked(states: Any, table: Any, bias: Any, labels: Any, weights: Any) -> Any:
        rows = tf.shape(states)[0]
        size = _size(table)
        chunks = (rows + size - 1) // size
        of_states = tf.TensorArray(
            states.dtype, size=chunks, infer_shape=False, element_shape=(None, table.shape[1])
        )

        def one(i: Any, nats: Any, hits: Any, of_table: Any, of_bias: Any, of_states: Any) -> Any:
            part = _part(i, size, rows)
            logits = _logits(states[part], table, bias)
            gradient, more, more_hits = scored(logits, labels[part], weights[part])
            of_bias += tf.reduce_sum(gradient, axis=0)
            gradient = tf.cast(gradient, table.dtype)
            of_table += tf.cast(tf.matmul(gradient, states[part], transpose_a=True), tf.float32)
            of_states = of_states.write(i, tf.matmul(gradient, table))
            return i + 1, nats + more, hits + more_hits, of_table, of_bias, of_states

        nothing = tf.zeros(table.shape, tf.float32), tf.zeros(bias.shape, tf.float32)
        _, nats, hits, of_table, of_bias, of_states = tf.while_loop(
            lambda i, *_: i < chunks,
            one,
            (0, 0.0, 0.0, *nothing, of_states),
            parallel_iterations=1,  # one chunk's logits at a time
        )
        of_states = of_states.concat()

        def gradient(of_nats: Any, of_hits: Any) -> tuple[Any, ...]:
            del of_hits  # an accuracy has none
            return (
                tf.cast(of_nats, states.dtype) * of_states,
                tf.cast(of_nats * of_table, table.dtype),
                of_nats * of_bias,
                None,
                None,
            )

        return (nats, hits), gradient

    return chunked


def _less(table: Any, columns: Any, values: Any) -> Any:
    """(N, V) less one value in each row, at its column."""
    import tensorflow as tf

    places = tf.stack([tf.range(tf.shape(columns)[0]), columns], axis=1)
    return tf.tensor_scatter_nd_sub(table, places, values)
