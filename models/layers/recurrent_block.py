"""A recurrent layer: a cell that reads a sequence in one direction, or two that read it in both."""

from __future__ import annotations

from typing import Any

import keras

from models.keras_ops import ops
from models.layers.lstm import Lstm, read_lstm
from models.layers.recurrent import (
    BACKWARD,
    BOTH,
    FORWARD,
    LSTM,
    make_cell,
    read_along,
)


class RecurrentBlock(keras.layers.Layer):
    """A cell that reads a sequence in one direction, or two that read it in both.

    Args:
        cell: ``lstm`` or ``gru`` (`make_cell`).
        input_dim: E, width of what is read.
        hidden_dim: D, width of a direction's state.
        direction: ``forward``, ``backward`` or ``both``.

    Shape:
        x (B, T, E), mask (B, T) or None → (B, T, D) float32, of both directions (B, T, 2D), forward
        first; and the last state, a list of (B, D), of both directions the backward one's.

    Reference:
        Graves and Schmidhuber 2005, doi 10.1016/j.neunet.2005.06.042 (both directions).
    """

    def __init__(self, *, cell: str, input_dim: int, hidden_dim: int, direction: str, name: str):
        super().__init__(name=name, dtype="float32", autocast=False)
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.is_lstm = cell == LSTM
        directions = (FORWARD, BACKWARD) if direction == BOTH else (direction,)
        self.cells = [make_cell(cell, hidden_dim, each) for each in directions]

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        for cell in self.cells:
            cell.build((None, self.input_dim))
        self.built = True

    def call(self, x: Any, mask: Any = None) -> tuple[Any, list[Any]]:
        """Read."""
        given, last = [], []
        for cell in self.cells:
            each, last = self._read(cell, x, mask)
            given.append(each)
        return (given[0] if len(given) == 1 else ops.concatenate(given, axis=-1)), last

    def _read(self, cell: Any, x: Any, mask: Any) -> tuple[Any, list[Any]]:
        """What a cell gives after each token, (B, T, D), and its last state."""
        backwards = cell.name == BACKWARD
        if self.is_lstm:
            of_input = ops.matmul(ops.cast(x, "float32"), cell.kernel) + cell.bias
            return read_lstm(Lstm(cell.recurrent_kernel), of_input, mask, backwards=backwards)

        def step(states: list[Any], of_token: Any) -> list[Any]:
            return list(cell(of_token, states)[1])

        nothing = ops.zeros((ops.shape(x)[0], self.hidden_dim), "float32")
        each, last = read_along(step, [nothing], x, mask, backwards=backwards)
        return each[0], last
