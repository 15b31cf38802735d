"""Positions as sinusoids of different lengths, which nothing trains."""

from __future__ import annotations

import numpy as np


def cosines_and_sines(num_positions: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of p / 10000^(2i / D), p a position and D the width: (P, D / 2) float32."""
    lengths = 10_000.0 ** (np.arange(0, width, 2) / width)
    angles = np.arange(num_positions)[:, None] / lengths  # float64
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Sinusoids:
    """A table of positions, in the place of a learned one.

        position p, column 2i        sin(p / 10000^(2i / D))
        position p, column 2i + 1    cos(p / 10000^(2i / D))

    It has no variables, so that files of weights are without it.

    Args:
        num_positions: Rows, from position 0 on.
        width: D, even.

    Attributes:
        embeddings: (num_positions, D) float32.

    Reference:
        Vaswani et al. 2017, arXiv 1706.03762, 3.5. Others put all sines before all cosines.
    """

    built = True

    def __init__(self, num_positions: int, width: int):
        if width % 2:
            raise ValueError(f"hidden_dim must be even for sinusoids, got {width}")
        cosines, sines = cosines_and_sines(num_positions, width)
        self.embeddings = np.stack([sines, cosines], axis=-1).reshape(num_positions, width)
