"""Networks all of whose weights are drawn, and the layers of NumPy that they are held to."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.weights import load_weights, named_weights


def draw_weights(network: Any, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw all weights of a network, gains and biases too; returns them by name.

    Gains are near 1 and biases near 0: with others positions are all but equal after four blocks,
    so that nothing could be told apart.
    """
    drawn = {
        name: rng.normal(
            1.0 if name.endswith("gamma") else 0.0,
            0.1 if name.endswith(("gamma", "beta", "bias")) else 0.3,
            variable.shape,
        ).astype(np.float32)
        for name, variable in named_weights(network).items()
    }
    load_weights(network, drawn)
    return drawn


def dense(w: dict[str, np.ndarray], name: str, rows: np.ndarray) -> np.ndarray:
    return rows @ w[f"{name}/kernel"] + w[f"{name}/bias"]


def norm(w: dict[str, np.ndarray], name: str, rows: np.ndarray) -> np.ndarray:
    moved = rows - rows.mean(-1, keepdims=True)
    scaled = moved / np.sqrt((moved**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * w[f"{name}/gamma"] + w[f"{name}/beta"]
