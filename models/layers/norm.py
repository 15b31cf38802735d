"""Normalisation of a vector: LayerNorm, or by its root mean square alone."""

from __future__ import annotations

from typing import Any

import keras


def norm_layer(name: str, epsilon: float, *, rms: bool = False) -> Any:
    """A normalisation of the last axis, always float32.

    Args:
        name: Name of the layer.
        epsilon: Added to the variance, or to the mean square.
        rms: Whether the mean is not taken off and nothing is added:
            x / √(mean(x²) + ε) · scale (T5).

    Reference:
        Ba et al. 2016, arXiv 1607.06450; Zhang and Sennrich 2019, arXiv 1910.07467.
    """
    kind = keras.layers.RMSNormalization if rms else keras.layers.LayerNormalization
    return kind(epsilon=epsilon, name=name, dtype="float32")
