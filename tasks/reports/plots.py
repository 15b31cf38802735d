"""Plots in reports: small PNGs, as bytes or as data addresses for Prefect."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Losses only: rates and norms have other scales.
CURVES = ("loss", "heldout")
LARGEST = 150_000  # most bytes of a data address, since Prefect stores artifacts in its database


def loss_plot(history: Sequence[Mapping[str, float]]) -> bytes | None:
    """Plot of a stage's losses over its steps, as a PNG; None if there are none.

    Args:
        history: Rows ``{"step": s, name: value, …}``.
    """
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for row in history:
        for name, value in row.items():
            if any(part in name for part in CURVES) and math.isfinite(value):
                steps, values = curves.setdefault(name, ([], []))
                steps.append(row["step"])
                values.append(value)
    if not curves:
        return None
    drawn = figure(6, 3)
    axes = drawn.add_subplot()
    for name, (steps, values) in sorted(curves.items()):
        marker = "." if len(steps) < 30 else ""
        axes.plot(steps, values, marker=marker, linewidth=1, label=name)
    axes.set_xlabel("step")
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    # Explicit margins: computing them would draw everything twice.
    drawn.subplots_adjust(left=0.09, right=0.98, bottom=0.16, top=0.97)
    return png(drawn)


def png(drawn: Figure, scale: bool = False) -> bytes:
    """A figure as PNG bytes, without metadata, so that equal figures give equal files.

    With 64 colours, a chart looks the same and takes a quarter of the bytes.

    Args:
        drawn: The figure.
        scale: Whether it has a scale of colours; it then has 256, taken from all of the scale.
    """
    from PIL import Image

    stream, small = io.BytesIO(), io.BytesIO()
    drawn.savefig(stream, format="png", dpi=90, metadata={"Software": None})
    picture = Image.open(stream).convert("RGB")
    own = picture.quantize(256, Image.Quantize.MAXCOVERAGE) if scale else picture.quantize(64)
    own.save(small, format="png", optimize=True)
    return small.getvalue()


def data_address(picture: bytes) -> str | None:
    """A PNG as ``data:image/png;base64,…``; None if it is too large for Prefect's database."""
    address = "data:image/png;base64," + base64.b64encode(picture).decode()
    return address if len(address) < LARGEST else None


def figure(width: float, height: float) -> Figure:
    """A new figure, without pyplot, which has global state and may need a display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))
