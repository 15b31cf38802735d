"""Groups of rows with a score of their own, for a mean can rise while what matters falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

SLICES = ("length", "label")
SMALLEST = 20  # rows below which a slice's score says nothing


def slices_of(
    names: Sequence[str], lengths: np.ndarray, answers: np.ndarray, label_names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Rows of each slice.

    Args:
        names: Of `SLICES`.
        lengths: (rows,) tokens of each row.
        answers: (rows,) what is right.
        label_names: The answers with a slice of their own.

    Returns:
        ``length/short``, ``length/middle`` and ``length/long`` (thirds of the rows),
        ``label/NAME``: (k,) row numbers, slices of fewer than 20 rows left out.
    """
    found: dict[str, np.ndarray] = {}
    if "length" in names:
        thirds = np.array_split(np.argsort(lengths, kind="stable"), 3)
        for name, rows in zip(("short", "middle", "long"), thirds, strict=True):
            found[f"length/{name}"] = np.sort(rows)
    if "label" in names:
        for name in label_names:
            found[f"label/{name}"] = np.flatnonzero(answers == name)
    return {name: rows for name, rows in found.items() if len(rows) >= SMALLEST}


def forgetting(
    losses: Sequence[Mapping[str, float]], corpora: Sequence[str] | None = None
) -> dict[str, float]:
    """How much worse the last stage is on each corpus than the best stage before it, in nats.

    Chaudhry et al. 2018 (arXiv 1801.10112), eq. 3, with loss in place of accuracy; negative where
    the last stage is the best.

    Args:
        losses: Held-out loss by corpus after each stage, in order.
        corpora: Those to report; all where None.
    """
    if len(losses) < 2:
        return {}
    last = losses[-1]
    return {
        name: last[name] - min(before[name] for before in losses[:-1] if name in before)
        for name in (corpora if corpora is not None else last)
        if name in last and any(name in before for before in losses[:-1])
    }
