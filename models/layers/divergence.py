"""How far two predictions for the same rows are apart, as (sum, weight), for R-Drop."""

from __future__ import annotations

from typing import Any

from models.keras_ops import ops


def symmetric_kl(first: Any, second: Any, weights: Any) -> tuple[Any, Any]:
    """Mean of both Kullback-Leibler divergences between softmax distributions.

    ½ (KL(P‖Q) + KL(Q‖P)) = ½ Σ (p - q)(log p - log q).

    Args:
        first: (…, N) logits.
        second: (…, N) logits.
        weights: (…) weights, 0 where an entry does not count.

    Returns:
        (Σ w · nats, Σ w), float32.
    """
    logs = [ops.log_softmax(ops.cast(logits, "float32"), axis=-1) for logits in (first, second)]
    nats = 0.5 * ops.sum((ops.exp(logs[0]) - ops.exp(logs[1])) * (logs[0] - logs[1]), axis=-1)
    weights = ops.cast(weights, "float32")
    return ops.sum(weights * nats), ops.sum(weights)


def symmetric_binary_kl(first: Any, second: Any, weights: Any) -> tuple[Any, Any]:
    """As `symmetric_kl`, between yes and no.

    Args:
        first: (…) probabilities of yes.
        second: (…) probabilities of yes.
        weights: (…) weights.
    """
    p, q = (ops.clip(ops.cast(shares, "float32"), 1e-7, 1.0 - 1e-7) for shares in (first, second))
    odds = [ops.log(shares) - ops.log(1.0 - shares) for shares in (p, q)]
    weights = ops.cast(weights, "float32")
    return ops.sum(weights * 0.5 * (p - q) * (odds[0] - odds[1])), ops.sum(weights)
