"""Recurrent layers: a cell reads a sequence token by token and keeps a state.

States are float32 whatever the policy of the network: rounded at every token, they would drift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.slices import part

LSTM, GRU = "lstm", "gru"
FORWARD, BACKWARD, BOTH = "forward", "backward", "both"

Step = Callable[[list[Any], Any], list[Any]]


def make_cell(kind: str, hidden_dim: int, name: str) -> Any:
    """Keras's cell of a kind, whose state is vectors of width `hidden_dim`.

    Args:
        kind: ``lstm``, whose state is what it gives and its memory; ``gru``, whose state is what it
            gives. A GRU's reset gate acts before the product with the state, as in Cho et al. 2014,
            arXiv 1406.1078, equation 8.
        hidden_dim: Width of the state.
        name: Name of the layer.
    """
    if kind == LSTM:
        return keras.layers.LSTMCell(hidden_dim, name=name, dtype="float32")
    return keras.layers.GRUCell(hidden_dim, reset_after=False, name=name, dtype="float32")


def vectors_of(kind: str) -> int:
    """Number of vectors that the state of a cell of a kind has, the one that it gives first."""
    return 2 if kind == LSTM else 1


def read_along(
    step: Step, states: Sequence[Any], x: Any, mask: Any = None, *, backwards: bool = False
) -> tuple[list[Any], list[Any]]:
    """The states that a step makes, token after token.

    Args:
        step: (states, what is read of one token, (B, E)) → states.
        states: Those before the first token, (B, D) float32 each.
        x: What is read, (B, T, E) float32.
        mask: (B, T), 1 = token, 0 = padding, which leaves every state as it is; None for none.
        backwards: Whether it reads from the last token to the first.

    Returns:
        The states after each token, (B, T, D) each, and those after all, (B, D) each.
    """
    if mask is not None:
        # As one more column: Keras 3.15 fails on several inputs of a length that is not known.
        x = ops.concatenate([x, ops.cast(mask, "float32")[..., None]], axis=-1)

    def read(before: list[Any], of_token: Any) -> tuple[list[Any], list[Any]]:
        if mask is None:
            after = step(before, of_token)
            return after, after
        width = of_token.shape[1] - 1
        after, there = step(before, part(of_token, 0, width)), of_token[:, width:] > 0
        after = [ops.where(there, new, old) for new, old in zip(after, before, strict=True)]
        return after, after

    last, each = ops.scan(read, list(states), _turned(x), reverse=backwards)
    return [_turned(found) for found in each], last


def _turned(x: Any) -> Any:
    """(B, T, …) → (T, B, …), and back."""
    return ops.swapaxes(x, 0, 1)
