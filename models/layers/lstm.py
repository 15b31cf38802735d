"""An LSTM over whole sequences, with the gradient of its weights as one product over all tokens.

What TensorFlow derives from a loop of cells multiplies two small matrices at each token for the
gradient of the weights, and adds up the results. Here each token leaves the gradient of its gates,
and one product makes the weights' of all.

    z_t = given_t + R m_{t-1},  (i, f, g, o) = z_t
    c_t = clip(σ(f) · c_{t-1} + σ(i) · tanh(g)),  m_t = clip(P (σ(o) · tanh(c_t)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.recurrent import read_along

KERNELS = ("recurrent_kernel", "projection_kernel")


@dataclass(frozen=True)
class Lstm:
    """The weights and limits of an LSTM, apart from those of its input.

    Attributes:
        recurrent_kernel: R, (D, 4C): its gates in the order i, f, g, o.
        projection_kernel: P, (C, D); None: the output is the cell's own, D = C.
        cell_clip: Largest value of c, whose smallest is its negative; None for no limit.
        projection_clip: The same of m.
    """

    recurrent_kernel: Any
    projection_kernel: Any = None
    cell_clip: float | None = None
    projection_clip: float | None = None

    def step(self, states: list[Any], given: Any) -> list[Any]:
        """(m, c) after a token.

        Args:
            states: m (B, D) and c (B, C) before it.
            given: The product of what is read with its weights, and the bias, (B, 4C).
        """
        output, cell = states
        return self.after(self.gates(output, given), cell)

    def gates(self, output: Any, given: Any) -> list[Any]:
        """The gates σ(i), σ(f), tanh(g), σ(o), (B, C) each, of m before a token and `given`."""
        i, f, g, o = ops.split(given + ops.matmul(output, self.recurrent_kernel), 4, axis=-1)
        return [ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)]

    def after(self, gates: list[Any], cell: Any) -> list[Any]:
        """(m, c) after a token, of its gates and c before it."""
        i, f, g, o = gates
        cell = _clipped(f * cell + i * g, self.cell_clip)
        output = o * ops.tanh(cell)
        if self.projection_kernel is not None:
            output = ops.matmul(output, self.projection_kernel)
        return [_clipped(output, self.projection_clip), cell]


def read_lstm(
    lstm: Lstm, given: Any, mask: Any = None, *, backwards: bool = False
) -> tuple[Any, list[Any]]:
    """What an LSTM gives after each token, from states of zeros.

    Args:
        lstm: Its weights, float32.
        given: The products of what is read with its weights, and the bias, (B, T, 4C) float32.
        mask: (B, T), 1 = token, 0 = padding, which leaves the states as they are; None for none.
        backwards: Whether it reads from the last token to the first.

    Returns:
        m after each token, (B, T, D), and [m, c] after all, (B, D) and (B, C).
    """
    if keras.backend.backend() != "tensorflow":
        rows, (width, gates) = ops.shape(given)[0], lstm.recurrent_kernel.shape
        begin = [ops.zeros((rows, width), "float32"), ops.zeros((rows, gates // 4), "float32")]
        each, last = read_along(lstm.step, begin, given, mask, backwards=backwards)
        return each[0], last
    turned = [ops.swapaxes(given, 0, 1)]
    if mask is not None:
        turned.append(ops.swapaxes(mask, 0, 1)[..., None] > 0)
    if backwards:
        turned = [ops.flip(each, 0) for each in turned]
    outputs, cell = _read(lstm, *turned)
    last = [outputs[-1], cell]
    outputs = ops.flip(outputs, 0) if backwards else outputs
    return ops.swapaxes(outputs, 0, 1), last


def _clipped(x: Any, limit: float | None) -> Any:
    return x if limit is None else ops.clip(x, -limit, limit)


def _read(lstm: Lstm, given: Any, there: Any = None) -> tuple[Any, Any]:
    """Outputs m after each token (T, B, D) and the last c (B, C), on TensorFlow.

    Args:
        lstm: Its weights.
        given: (T, B, 4C).
        there: (T, B, 1), whether there is a token; None: everywhere.
    """
    import tensorflow as tf

    kernels = [lstm.recurrent_kernel, lstm.projection_kernel]

    @tf.custom_gradient
    def read(given: Any, *kernels: Any) -> Any:
        plain = replace(lstm, **dict(zip(KERNELS, kernels, strict=False)))
        outputs, cells, gates = _forward(plain, given, there)

        def backward(of_outputs: Any, of_cell: Any) -> list[Any]:
            return _backward(plain, there, (outputs, cells, gates), of_outputs, of_cell)

        return (outputs, cells[-1]), backward

    return read(given, *(tf.convert_to_tensor(each) for each in kernels if each is not None))


def _forward(lstm: Lstm, given: Any, there: Any) -> tuple[Any, Any, Any]:
    """Outputs m (T, B, D), c (T, B, C) and the gates σ(i), σ(f), tanh(g), σ(o) (T, B, 4C)."""
    import tensorflow as tf

    width, of_gates = lstm.recurrent_kernel.shape
    length, rows = given.shape[0] or tf.shape(given)[0], tf.shape(given)[1]

    def token(t: Any, output: Any, cell: Any, *kept: Any) -> Any:
        gates = lstm.gates(output, given[t])
        new, new_cell = lstm.after(gates, cell)
        if there is not None:
            new, new_cell = tf.where(there[t], new, output), tf.where(there[t], new_cell, cell)
        values = new, new_cell, tf.concat(gates, axis=-1)
        return t + 1, new, new_cell, *_written(kept, t, *values)

    cells = of_gates // 4
    *_, outputs, kept_cells, gates = tf.while_loop(
        lambda t, *_: t < length,
        token,
        (
            tf.constant(0),
            tf.zeros((rows, width)),
            tf.zeros((rows, cells)),
            *_room(length, width, cells, of_gates),
        ),
        maximum_iterations=length,
    )
    return outputs.stack(), kept_cells.stack(), gates.stack()


def _backward(
    lstm: Lstm, there: Any, kept: tuple[Any, Any, Any], of_outputs: Any, of_cell: Any
) -> list[Any]:
    """The gradients of `given`, R and P.

    Args:
        lstm: Its weights.
        there: As for `_read`.
        kept: What `_forward` returned.
        of_outputs: The gradient of m, (T, B, D).
        of_cell: The gradient of the last c, (B, C).
    """
    import tensorflow as tf

    outputs, cells, gates = kept
    width, of_gates = lstm.recurrent_kernel.shape
    length, rows = outputs.shape[0] or tf.shape(outputs)[0], tf.shape(outputs)[1]
    before = [tf.concat([tf.zeros_like(x[:1]), x[:-1]], axis=0) for x in (outputs, cells)]
    transposed = tf.transpose(lstm.recurrent_kernel)
    projecting = None if lstm.projection_kernel is None else tf.transpose(lstm.projection_kernel)

    def token(t: Any, of_output: Any, of_cell: Any, *kept: Any) -> Any:
        """The gradients of m and c before token t, from those after it."""
        i, f, g, o = tf.split(gates[t], 4, axis=-1)
        of_output = of_output + of_outputs[t]
        here = None if there is None else tf.cast(there[t], tf.float32)
        of_new, of_new_cell = of_output, of_cell
        if here is not None:  # what passes by a token that is not there has no part in it
            of_new, of_new_cell = of_new * here, of_new_cell * here
        of_new = _inside(of_new, outputs[t], lstm.projection_clip)
        of_raw = of_new if projecting is None else tf.matmul(of_new, projecting)
        squashed = tf.tanh(cells[t])
        of_new_cell = of_new_cell + of_raw * o * (1 - squashed * squashed)
        of_new_cell = _inside(of_new_cell, cells[t], lstm.cell_clip)
        of_z = tf.concat(
            [
                of_new_cell * g * i * (1 - i),
                of_new_cell * before[1][t] * f * (1 - f),
                of_new_cell * i * (1 - g * g),
                of_raw * squashed * o * (1 - o),
            ],
            axis=-1,
        )
        earlier, earlier_cell = tf.matmul(of_z, transposed), of_new_cell * f
        if here is not None:
            earlier += of_output * (1 - here)
            earlier_cell += of_cell * (1 - here)
        return t - 1, earlier, earlier_cell, *_written(kept, t, of_z, of_new)

    *_, of_z, of_new = tf.while_loop(
        lambda t, *_: t >= 0,
        token,
        (length - 1, tf.zeros((rows, width)), of_cell, *_room(length, of_gates, width)),
        maximum_iterations=length,
    )
    of_given = of_z.stack()
    found = [of_given, _product(before[0], of_given)]
    if projecting is not None:
        raw = gates[..., -of_gates // 4 :] * tf.tanh(cells)
        found.append(_product(raw, of_new.stack()))
    return found


def _inside(gradient: Any, clipped: Any, limit: float | None) -> Any:
    """The gradient of a clipped value with respect to the value: 0 where it was clipped."""
    if limit is None:
        return gradient
    return gradient * ops.cast(abs(clipped) < limit, "float32")


def _product(left: Any, right: Any) -> Any:
    """The sum over all tokens and rows of the outer products of (T, B, M) and (T, B, N), (M, N)."""
    flat = [ops.reshape(x, (-1, x.shape[-1])) for x in (left, right)]
    return ops.matmul(ops.transpose(flat[0]), flat[1])


def _room(length: Any, *widths: int) -> list[Any]:
    """Places for a (B, width) of each token."""
    import tensorflow as tf

    return [tf.TensorArray(tf.float32, length, element_shape=(None, width)) for width in widths]


def _written(places: Sequence[Any], t: Any, *values: Any) -> list[Any]:
    return [place.write(t, value) for place, value in zip(places, values, strict=True)]
