"""Losses and metrics as (sum, weight), so that means over batches of different size are exact."""

from __future__ import annotations

from typing import Any

from models.keras_ops import ops


def cross_entropy(logits: Any, labels: Any, weights: Any) -> dict[str, tuple[Any, Any]]:
    """Softmax cross-entropy and accuracy, in float32.

    Args:
        logits: (…, N).
        labels: (…) int32 in [0, N).
        weights: (…) float32 loss weights, 0 where an entry does not count.

    Returns:
        {"loss": (Σ w·nats, Σ w), "accuracy": (Σ w·[hit], Σ w)}; a tie for the highest logit is a
        hit.
    """
    logits = ops.cast(logits, "float32")
    weights = ops.cast(weights, "float32")
    nats = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    # Comparing with the maximum is cheaper than an argmax over the vocabulary.
    own = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    hit = ops.cast(own >= ops.max(logits, axis=-1), "float32")
    total = ops.sum(weights)
    return {"loss": (ops.sum(weights * nats), total), "accuracy": (ops.sum(weights * hit), total)}


def binary_cross_entropy(scores: Any, labels: Any, weights: Any) -> dict[str, tuple[Any, Any]]:
    """Sigmoid cross-entropy and accuracy, in float32.

    Args:
        scores: (…) log odds of 1.
        labels: (…) float32, 0 or 1.
        weights: (…) float32 loss weights, 0 where an entry does not count.

    Returns:
        {"loss": (Σ w·nats, Σ w), "accuracy": (Σ w·[hit], Σ w)}.
    """
    scores = ops.cast(scores, "float32")
    nats = ops.softplus(scores) - labels * scores
    hit = ops.cast(ops.equal(scores > 0, labels > 0), "float32")
    total = ops.sum(weights)
    return {"loss": (ops.sum(weights * nats), total), "accuracy": (ops.sum(weights * hit), total)}
