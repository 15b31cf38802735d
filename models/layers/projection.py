"""The dense layer as every family here starts it: truncated normal kernels, zero biases."""

from __future__ import annotations

from typing import Any

import keras


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
        units,
        use_bias=use_bias,
        kernel_initializer=initializer,
        name=name,
        dtype=dtype,
    )
