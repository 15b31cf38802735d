"""Fusing element-wise functions with XLA, for TensorFlow on CPU.

Without it, TensorFlow passes over memory once for each of a GELU's ten operations, forward and
backward. Compiled with XLA, it is one pass. Matrix products are not included: oneDNN's are faster
than XLA's. JAX compiles everything anyway, and on a GPU the whole step is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras


def xla_elementwise(function: Callable[..., Any], trained: int | None = None) -> Callable[..., Any]:
    """Compile `function` and its gradient, for TensorFlow on CPU.

    The gradient recomputes the forward pass, which is cheaper than storing the intermediate values.

    Args:
        function: A function from tensors to one tensor, without variables and without random
            numbers (very slow in XLA).
        trained: How many of its arguments have a gradient, from the first; None for all.

    Returns:
        A function with the same results up to rounding; `function` itself on other backends.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    forward = tf.function(function, jit_compile=True, autograph=False)

    @tf.function(jit_compile=True, autograph=False)
    def backward(arguments: tuple[Any, ...], upstream: Any) -> list[Any]:
        watched = arguments[:trained]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            result = function(*arguments)
        return tape.gradient(result, watched, output_gradients=upstream)

    @tf.custom_gradient
    def compiled(*arguments: Any) -> tuple[Any, Callable[[Any], Any]]:
        fixed = [None] * len(arguments[trained:]) if trained is not None else []
        return forward(*arguments), lambda upstream: [*backward(arguments, upstream), *fixed]

    def choose(*arguments: Any) -> Any:
        if tf.config.list_physical_devices("GPU"):
            return function(*arguments)
        return compiled(*(tf.convert_to_tensor(argument) for argument in arguments))

    return choose
