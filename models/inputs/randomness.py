"""Random generators and seeds as pure functions of names and numbers."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(*parts: int | str) -> np.random.Generator:
    """A generator that depends only on `parts` (seed, purpose, index …)."""
    return np.random.default_rng(_number(parts, 16))


def grain_seed(*parts: int | str) -> int:
    """A 32-bit seed, the widest that Grain accepts."""
    return _number(parts, 4)


def _number(parts: tuple[int | str, ...], num_bytes: int) -> int:
    """An integer of `num_bytes` bytes from the parts; repr distinguishes 1 and "1"."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:num_bytes], "big")
