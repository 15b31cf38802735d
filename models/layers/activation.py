"""Activations by name. The two GELUs differ by up to 5e-4, so a recipe says which one it means."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras

from fourstage.errors import UnknownNameError

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


def gelu_tanh(x: Any) -> Any:
    """GELU by the tanh approximation: Google's BERT, ALBERT and ELECTRA, GPT, GPT-2.

    Written out because TensorFlow's own takes the cube with ``pow``, ten times slower on a CPU.
    """
    inner = math.sqrt(2.0 / math.pi) * x * (1.0 + 0.044715 * x * x)
    return 0.5 * x * (1.0 + ops.tanh(inner))


def gelu(x: Any) -> Any:
    """GELU by the error function: RoBERTa, BART, and what Hugging Face calls ``gelu``."""
    return keras.activations.gelu(x, approximate=False)


def relu(x: Any) -> Any:
    """The positive part."""
    return ops.relu(x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent, of poolers."""
    return ops.tanh(x)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "tanh": tanh,
}


def activation(name: str) -> Callable[[Any], Any]:
    """The function called `name`.

    Raises:
        UnknownNameError: If there is none.
    """
    if name not in ACTIVATIONS:
        raise UnknownNameError("size: activation", name, "an activation", ACTIVATIONS)
    return ACTIVATIONS[name]
