"""What the head of a frozen network has learned to read of each layer, in words and as a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from models.stage_format import FEATURE_BASED, head_file
from tasks.reports.tables import markdown_table


def layer_mix(folder: Path) -> tuple[list[float], float] | None:
    """The share of each layer, softmax(w), and the factor γ (`models.layers.frozen_features`).

    Args:
        folder: Folder of a stage.

    Returns:
        Shares that sum to 1, of what enters the first layer first, and γ; None where no head reads
        a frozen network.
    """
    path = head_file(folder, FEATURE_BASED)
    if not path.exists():
        return None
    weights = load_file(path)
    shares = np.exp(weights["mix/w"].astype(np.float64))
    return (shares / shares.sum()).tolist(), float(weights["mix/scale"])


def mix_line(folder: Path) -> str:
    """The shares on one line; empty without a mix of several layers."""
    found = layer_mix(folder)
    if found is None or len(found[0]) < 2:
        return ""
    told = ", ".join(f"{number}: {share:.2f}" for number, share in enumerate(found[0]))
    return f"layers {told}, times {found[1]:.2f}"


def mix_table(folder: Path) -> str:
    """The shares as a Markdown table; empty without a mix of several layers."""
    found = layer_mix(folder)
    if found is None or len(found[0]) < 2:
        return ""
    head = ("layer", *map(str, range(len(found[0]))), "γ")
    cells = ("learned share", *(f"{share:.4f}" for share in found[0]), f"{found[1]:.4f}")
    return markdown_table(head, [cells])
