"""The dense layer as every family here starts it: truncated normal kernels, zero biases."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import keras

from models.layers.activation import activation as activation_called
from models.layers.xla_elementwise import xla_elementwise

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def projection(
    units: int, *, name: str, dtype: str, stddev: float = 0.02, use_bias: bool = True
) -> keras.layers.Dense:
    """A dense layer with BERT's initialisation.

    Args:
        units: Width of the output.
        name: Last part but one of its variables' paths.
        dtype: Policy name, ``float32`` or ``mixed_bfloat16``.
        stddev: Of the normal distribution that kernels are drawn from, cut at two deviations.
        use_bias: Whether a bias is added.
    """
    initializer: Any = keras.initializers.TruncatedNormal(stddev=stddev)
    return keras.layers.Dense(
        units, use_bias=use_bias, kernel_initializer=initializer, name=name, dtype=dtype
    )


@cache
def _with_bias(activation: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Addition of a bias and an activation, as plain operations and compiled.

    One for all layers of a process: compiled once for each shape, where a layer's own would be
    compiled in every layer of every network, and never let go of.
    """
    curve = activation_called(activation)

    def activate(x: Any, bias: Any) -> Any:
        exact = ops.cast(x, "float32") + ops.cast(bias, "float32")
        return ops.cast(curve(exact), x.dtype)

    return activate, xla_elementwise(activate)


class ActivatedProjection(keras.layers.Dense):
    """A dense layer and its activation, the bias added where the activation is computed.

    In training on TensorFlow's CPU bias and activation are one compiled function; elsewhere, and
    where a model is exported, they are plain operations. Values agree up to rounding.

    Args:
        units: Width of the output.
        activation: Name of the activation.
        name: Last part but one of its variables' paths.
        dtype: Policy name of the matrix product; the activation is computed in float32.

    Shape:
        (…, D) → (…, units) in the compute type.
    """

    def __init__(self, units: int, *, activation: str, name: str, dtype: str):
        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)
        super().__init__(units, kernel_initializer=initializer, name=name, dtype=dtype)
        self._plain, self._compiled = _with_bias(activation)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Project, then activate."""
        projected = ops.matmul(inputs, self.kernel)
        activate = self._compiled if training else self._plain
        return activate(projected, self.bias)
