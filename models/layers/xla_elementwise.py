"""Element-wise functions compiled as one, where TensorFlow would run them operation by operation.

On a CPU TensorFlow makes a pass over memory for each of a GELU's ten operations, forward and back;
compiled by XLA they are one pass. Matrix products stay outside: oneDNN's are faster than XLA's. On
JAX everything is compiled anyway, and on a GPU the step as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras


def xla_elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with forward and gradient each compiled as one on TensorFlow's CPU.

    The gradient computes the forward pass anew: cheaper than keeping what is in between.

    Args:
        function: Of tensors only, to one tensor; no random numbers (ruinous inside), no variables.

    Returns:
        A function with the same values up to rounding; `function` itself on other backends.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    forward = tf.function(function, jit_compile=True)

    @tf.function(jit_compile=True)
    def backward(arguments: tuple[Any, ...], upstream: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        return tape.gradient(result, arguments, output_gradients=upstream)

    @tf.custom_gradient
    def compiled(*arguments: Any) -> tuple[Any, Callable[[Any], Any]]:
        return forward(*arguments), lambda upstream: backward(arguments, upstream)

    def choose(*arguments: Any) -> Any:
        if tf.config.list_physical_devices("GPU"):
            return function(*arguments)
        return compiled(*(tf.convert_to_tensor(argument) for argument in arguments))

    return choose
