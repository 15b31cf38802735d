"""Dense layers with BERT's initialisation: truncated normal kernels, zero biases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import keras

from models.layers.activation import activation as activation_called
from models.layers.xla_elementwise import xla_elementwise

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class Projection(keras.layers.Dense):
    """A dense layer, to whose product a low-rank update may be added (`models.layers.low_rank`).

    Attributes:
        beside: (inputs, training) → what is added, (…, units); None for nothing.
    """

    beside: Callable[[Any, bool | None], Any] | None = None

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Project."""
        outputs = self.product(inputs)
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        return outputs if self.beside is None else outputs + self.beside(inputs, training)

    def product(self, inputs: Any) -> Any:
        """The product with the kernel, (…, D) → (…, units).

        As one of matrices. For more axes Keras calls ``tensordot``, which puts twice as many
        operations on shapes round the same product; a small network spends its time on those.
        """
        if len(inputs.shape) == 2:
            return ops.matmul(inputs, self.kernel)
        rows = ops.matmul(ops.reshape(inputs, (-1, inputs.shape[-1])), self.kernel)
        return ops.reshape(rows, (*ops.shape(inputs)[:-1], self.units))


def projection(
    units: int, *, name: str, dtype: str, stddev: float = 0.02, use_bias: bool = True
) -> Projection:
    """A dense layer with BERT's initialisation.

    Args:
        units: Width of the output.
        name: Name of the layer, the second-to-last part of its variables' paths.
        dtype: Dtype policy, ``float32`` or ``mixed_bfloat16``.
        stddev: Standard deviation of the kernel's normal distribution, truncated at two deviations.
        use_bias: Whether a bias is added.
    """
    initializer: Any = keras.initializers.TruncatedNormal(stddev=stddev)
    return Projection(
        units, use_bias=use_bias, kernel_initializer=initializer, name=name, dtype=dtype
    )


@cache
def _with_bias(activation: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Bias and activation as one function: plain, and compiled.

    Cached, so that all layers of a process share it and it is compiled once per shape. A function
    per layer would be compiled again for every layer of every network, and never be freed.
    """
    curve = activation_called(activation)

    def activate(x: Any, bias: Any) -> Any:
        exact = ops.cast(x, "float32") + ops.cast(bias, "float32")
        return ops.cast(curve(exact), x.dtype)

    return activate, xla_elementwise(activate)


class ActivatedProjection(Projection):
    """A dense layer with an activation, where bias and activation are one function.

    In training with TensorFlow on CPU, this function is compiled. Elsewhere, and in exported
    models, it is made of plain operations. The results are the same up to rounding.

    Args:
        units: Width of the output.
        activation: Name of the activation.
        name: Name of the layer, the second-to-last part of its variables' paths.
        dtype: Dtype policy of the matrix product; the activation is computed in float32.

    Shape:
        (…, D) → (…, units) in the compute dtype.
    """

    def __init__(self, units: int, *, activation: str, name: str, dtype: str):
        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)
        super().__init__(units, kernel_initializer=initializer, name=name, dtype=dtype)
        self._plain, self._compiled = _with_bias(activation)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Project, then activate."""
        projected = self.product(inputs)
        if self.beside is not None:
            projected = projected + self.beside(inputs, training)
        activate = self._compiled if training else self._plain
        return activate(projected, self.bias)
