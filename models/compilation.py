"""Whether XLA compiles whole steps, each of their shapes anew."""

from __future__ import annotations

from typing import Any

import keras


def jit_compile() -> Any:
    """Value for ``compile(jit_compile=…)``: no XLA for TensorFlow on CPU, else Keras's choice.

    On CPU, oneDNN's kernels are faster than XLA's. On JAX, ``False`` would mean eager execution.
    """
    if keras.backend.backend() != "tensorflow":
        return "auto"
    import tensorflow as tf

    return "auto" if tf.config.list_physical_devices("GPU") else False
