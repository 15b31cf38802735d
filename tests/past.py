"""Keys and values of tokens that a test reads one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

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


def target_token_by_token(network: Any, batch: Mapping[str, np.ndarray]) -> Any:
    """The decoder's states, (B, S, D), of a target that an encoder–decoder reads one by one."""
    memorised, past, found = network.memorised(batch), [], []
    for place in range(batch["target_ids"].shape[1]):
        given = {
            **batch,
            "target_ids": batch["target_ids"][:, place : place + 1],
            "target_mask": batch["target_mask"][:, : place + 1],
        }
        hidden, new = network.go_on(given, past, memorised)
        past = longer(past, new)
        found.append(hidden)
    return keras.ops.concatenate(found, axis=1)
