"""An LSTM whose output is projected to fewer values, which it reads at the next token (`lstm`)."""

from __future__ import annotations

from typing import Any

import keras

from models.keras_ops import ops
from models.layers.lstm import Lstm, read_lstm
from models.layers.projection import Projection


class ProjectedLstm(keras.layers.Layer):
    """It reads a sequence in one direction, from a state of zeros.

    States are float32 whatever the policy, as in `models.layers.recurrent`.

    Args:
        input_dim: E.
        cell_dim: Width of c.
        output_dim: D, width of m.
        cell_clip: Largest value of c; smallest is its negative.
        projection_clip: Largest value of m.
        backwards: Whether it reads from the last token to the first.
        dtype: Policy of the product with the input.

    Shape:
        x (B, T, E), mask (B, T) or None → (B, T, D) float32. Padding leaves the state as it is.

    Reference:
        Sak et al. 2014, arXiv 1402.1128, without peepholes; clipping as in Jozefowicz et al. 2016,
        arXiv 1602.02410, and Peters et al. 2018.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        cell_dim: int,
        output_dim: int,
        cell_clip: float,
        projection_clip: float,
        backwards: bool,
        dtype: str,
        name: str,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.input_dim, self.cell_dim, self.output_dim = input_dim, cell_dim, output_dim
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.backwards = backwards
        forget_one: Any = _forget_one
        self.input_layer = Projection(
            4 * cell_dim,
            kernel_initializer=_glorot(),
            bias_initializer=forget_one,
            name="input",
            dtype=dtype,
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        self.input_layer.build((None, None, self.input_dim))
        for name, shape in (
            ("recurrent_kernel", (self.output_dim, 4 * self.cell_dim)),
            ("projection_kernel", (self.cell_dim, self.output_dim)),
        ):
            weight = self.add_weight(
                shape=shape, initializer=_glorot(), name=name, dtype="float32", autocast=False
            )
            setattr(self, name, weight)
        self.built = True

    def call(self, x: Any, mask: Any = None) -> Any:
        """Read."""
        lstm = Lstm(
            self.recurrent_kernel, self.projection_kernel, self.cell_clip, self.projection_clip
        )
        given = ops.cast(self.input_layer(x), "float32")
        return read_lstm(lstm, given, mask, backwards=self.backwards)[0]


def _glorot() -> Any:
    """One of its own for each variable: an initializer draws the same numbers each time."""
    return keras.initializers.GlorotUniform()


def _forget_one(shape: tuple[int], dtype: Any = None) -> Any:
    """A bias of zeros, with ones for f, so that a cell begins by keeping what it has."""
    (width,) = shape
    quarter = width // 4
    return ops.cast((ops.arange(width) // quarter) == 1, dtype or "float32")
