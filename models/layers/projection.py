"""Dense layers with BERT's initialisation: truncated normal kernels, zero biases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.activation import activation as activation_called
from models.layers.xla_elementwise import xla_elementwise


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


def kernel_initializer(stddev: float | None, gain: float = 1.0) -> Any:
    """Normal, truncated at two deviations: N(0, stddev²); for None N(0, gain / inputs), as in T5.

    Args:
        stddev: Standard deviation before truncation, or None.
        gain: Only where `stddev` is None: variance of an output of the layer whose inputs have
            variance 1.
    """
    if stddev is None:
        return keras.initializers.VarianceScaling(gain, "fan_in", "truncated_normal")
    return keras.initializers.TruncatedNormal(stddev=stddev)


def projection(
    units: int,
    *,
    name: str,
    dtype: str,
    stddev: float | None = 0.02,
    gain: float = 1.0,
    use_bias: bool = True,
) -> Projection:
    """A dense layer with BERT's initialisation, or T5's.

    Args:
        units: Width of the output.
        name: Name of the layer, the second-to-last part of its variables' paths.
        dtype: Dtype policy, ``float32`` or ``mixed_bfloat16``.
        stddev: Standard deviation of the initial kernel (`kernel_initializer`).
        gain: Of the initial kernel where `stddev` is None.
        use_bias: Whether a bias is added.
    """
    return Projection(
        units,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer(stddev, gain),
        name=name,
        dtype=dtype,
    )


@cache
def _activating(activation: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Activation, or bias and activation, as one function: plain, and compiled.

    Cached, so that all layers of a process share it and it is compiled once per shape. A function
    per layer would be compiled again for every layer of every network, and never be freed.
    """
    curve = activation_called(activation)

    def activate(x: Any, *bias: Any) -> Any:
        exact = ops.cast(x, "float32")
        for each in bias:
            exact = exact + ops.cast(each, "float32")
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
        stddev: Standard deviation of the initial kernel (`kernel_initializer`).
        use_bias: Whether a bias is added.

    Shape:
        (…, D), and (…, units) that is added before the activation, or None → (…, units) in the
        compute dtype.
    """

    def __init__(
        self,
        units: int,
        *,
        activation: str,
        name: str,
        dtype: str,
        stddev: float | None = 0.02,
        use_bias: bool = True,
    ):
        super().__init__(
            units,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer(stddev),
            name=name,
            dtype=dtype,
        )
        self._plain, self._compiled = _activating(activation)

    def call(self, inputs: Any, training: bool | None = None, more: Any = None) -> Any:
        """Project, then activate."""
        projected = self.product(inputs)
        if more is not None:
            projected = projected + more
        if self.beside is not None:
            projected = projected + self.beside(inputs, training)
        activate = self._compiled if training else self._plain
        return activate(projected) if self.bias is None else activate(projected, self.bias)
