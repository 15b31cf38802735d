"""How much an attention weighs what it sees, for people to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from models.keras_ops import ops
from models.layers.attention import MultiHeadAttention
from models.layers.recurrent_decoder import Memory, RecurrentDecoder


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


@contextmanager
def watched_attention(network: Any) -> Iterator[list[tuple[MultiHeadAttention, Any]]]:
    """Keep the weights of every `MultiHeadAttention` that a network uses inside the context.

    They are the very values with which the layer goes on, taken where it hands them to its dropout.
    So they are right for each kind of attention, whatever its scores are made of, and training has
    nothing to do with it. The network has to be called eagerly.

    Args:
        network: A built network.

    Yields:
        A list that grows while the network reads: the layer and its weights (B, H, T, S) in its
        compute dtype, in the order in which the layers are used. What is hidden has 0.
    """
    kept: list[tuple[MultiHeadAttention, Any]] = []

    def watching(layer: MultiHeadAttention) -> Callable[..., Any]:
        dropout = layer.dropout

        def watch(weights: Any, training: bool | None = None) -> Any:
            kept.append((layer, weights))
            return dropout(weights, training=training)

        return watch

    layers = [each for each in network._flatten_layers() if isinstance(each, MultiHeadAttention)]
    own = [layer.dropout for layer in layers]
    try:
        for layer in layers:  # past Keras, which would take a change for one of the network
            layer.__dict__["dropout"] = watching(layer)
        yield kept
    finally:
        for layer, dropout in zip(layers, own, strict=True):
            layer.__dict__["dropout"] = dropout


def alignment_weights(decoder: RecurrentDecoder, after: Any, memory: Memory, mask: Any) -> Any:
    """The weights with which a recurrent decoder attends to a text, at each token of its target.

    The mean of unit vectors by a weight each is these weights, so the layer itself computes them.

    Args:
        decoder: A decoder with attention.
        after: Its state after each token, (num_states, 1, N, D) float32.
        memory: What it knows of the text.
        mask: (1, T), 1 = a token of the text, 0 = padding.

    Returns:
        (N, T) float32, which sum to 1 over T: row n for what is written after token n.
    """
    assert decoder.attention is not None, "it attends"
    asking = -1 - decoder.vectors  # of the last cell; the output stands behind it
    states = after[asking, 0]  # (N, D)
    if decoder.attends_first:
        states = ops.concatenate([memory.states[asking], states[:-1]], axis=0)
    units = ops.eye(memory.keys.shape[1], dtype="float32")[None]  # (1, T, T)
    return decoder.attention(states, memory.keys, units, mask)
