"""Keys and values of tokens that a test reads one after another."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from models.layers.attention import Past


def longer(past: Sequence[Past], new: Sequence[Past]) -> list[Past]:
    """By layer, those of tokens and of the tokens that were read after them."""
    if not past:
        return list(new)
    found = []
    for layers in zip(past, new, strict=True):
        key, value = (keras.ops.concatenate(both, axis=2) for both in zip(*layers, strict=True))
        found.append((key, value))
    return found
