"""How much an attention weighs what it sees, for people to look at."""

from __future__ import annotations

from typing import Any

import keras

from models.layers.attention import MultiHeadAttention

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def attention_weights(
    asking: MultiHeadAttention, x: Any, seen: MultiHeadAttention, memory: Any, bias: Any
) -> Any:
    """The weights that `MultiHeadAttention.attend` gives, as a mean over the heads.

    Args:
        asking: The attention whose queries are asked.
        x: (B, T, D), what asks.
        seen: The attention whose keys are seen; it may be another one.
        memory: (B, S, D′), what is seen.
        bias: Broadcast to (B, H, T, S).

    Returns:
        (B, T, S) float32, which sum to 1 over S.
    """
    key, _ = seen.keys_and_values(memory)  # (B, H, K, S)
    shape = (*ops.shape(x)[:2], asking.num_heads, asking.head_dim)
    query = ops.transpose(ops.reshape(asking.query(x), shape), (0, 2, 1, 3))
    if asking.scaled:
        query = query * asking.head_dim**-0.5
    scores = ops.cast(ops.matmul(query, key), "float32") + bias
    return ops.mean(ops.softmax(scores, axis=-1), axis=1)
