"""Pictures in reports: small PNGs, as bytes or as data addresses that Prefect shows."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Losses are what a person looks at first; rates and norms have other scales.
CURVES = ("loss", "heldout")
LARGEST = 150_000  # bytes of a data address; Prefect keeps artifacts in its database


def loss_plot(history: Sequence[Mapping[str, float]]) -> bytes | None:
    """Every loss of a stage over its steps as a PNG, or None where there is none.

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
    # Margins by hand: having them worked out draws everything twice.
    drawn.subplots_adjust(left=0.09, right=0.98, bottom=0.16, top=0.97)
    return png(drawn)


def png(drawn: Figure) -> bytes:
    """A figure as PNG bytes without a date, so that equal figures are equal files.

    With 64 colours a chart looks the same and takes a quarter of the bytes.
    """
    from PIL import Image

    stream, small = io.BytesIO(), io.BytesIO()
    drawn.savefig(stream, format="png", dpi=90, metadata={"Software": None})
    Image.open(stream).convert("RGB").quantize(64).save(small, format="png", optimize=True)
    return small.getvalue()


def data_address(picture: bytes) -> str | None:
    """A PNG as ``data:image/png;base64,…``; None where it is too large for a page's database."""
    address = "data:image/png;base64," + base64.b64encode(picture).decode()
    return address if len(address) < LARGEST else None


def figure(width: float, height: float) -> Figure:
    """A figure without pyplot, whose state is the process's and which wants a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))
