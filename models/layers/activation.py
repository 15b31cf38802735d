"""Activations by name. The two GELUs differ by up to 5e-4, so they have separate names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras

from fourstage.errors import UnknownNameError
from models.keras_ops import ops


def gelu_tanh(x: Any) -> Any:
    """GELU with the tanh approximation: Google's BERT, ALBERT and ELECTRA, GPT, GPT-2.

    TensorFlow's own version computes the cube with ``pow``, which is ten times slower on CPU.
    """
    inner = math.sqrt(2.0 / math.pi) * x * (1.0 + 0.044715 * x * x)
    return 0.5 * x * (1.0 + ops.tanh(inner))


def gelu(x: Any) -> Any:
    """GELU with the error function: RoBERTa, BART, and Hugging Face's ``gelu``."""
    return keras.activations.gelu(x, approximate=False)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "silu": ops.silu,  # swish, x · sigmoid(x): the networks of Marian
    "tanh": ops.tanh,  # of poolers
}
IN_BLOCKS = tuple(name for name in ACTIVATIONS if name != "tanh")


def activation(name: str) -> Callable[[Any], Any]:
    """The activation function called `name`.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in ACTIVATIONS:
        raise UnknownNameError("size: activation", name, "an activation", ACTIVATIONS)
    return ACTIVATIONS[name]
