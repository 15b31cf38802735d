"""Gradients against finite differences of a function in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

STEP = 1e-6


def check_slopes(
    gradient: np.ndarray, value: np.ndarray, function: Callable[[], float], name: str
) -> None:
    """Check a gradient where it is largest, and at a place drawn at random.

    Args:
        gradient: Of the function, by the code under test.
        value: float64, the array that the function reads and the gradient is of.
        function: In NumPy.
        name: Of the array, for the message.
    """
    assert gradient.shape == value.shape
    assert np.abs(gradient).max() > 0, name
    rng = np.random.default_rng(value.size)
    drawn = tuple(rng.integers(0, n) for n in value.shape)
    for place in (np.unravel_index(np.abs(gradient).argmax(), value.shape), drawn):
        before, sides = value[place], []
        for change in (STEP, -STEP):
            value[place] = before + change
            sides.append(function())
        value[place] = before
        slope = (sides[0] - sides[1]) / (2 * STEP)
        assert gradient[place] == pytest.approx(slope, rel=1e-3, abs=1e-4), (name, place)
