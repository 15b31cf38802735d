"""Slices: subsets of rows that are scored separately, because a mean can hide a loss in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

SLICES = ("length", "label")
SMALLEST = 20  # the score of a slice with fewer rows is meaningless


def slices_of(
    names: Sequence[str], lengths: np.ndarray, answers: np.ndarray, label_names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Row numbers of each slice.

    Args:
        names: Kinds of slices, from `SLICES`.
        lengths: (rows,) tokens per row.
        answers: (rows,) correct answers.
        label_names: Labels that have a slice.

    Returns:
        {slice: (k,) row numbers}: ``length/short``, ``length/middle`` and ``length/long`` (thirds
        of the rows) and ``label/NAME``, without slices of fewer than 20 rows.
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
    """Forgetting: the last stage's loss minus the best earlier stage's, for each corpus, in nats.

    Chaudhry et al. 2018 (arXiv 1801.10112), eq. 3, with loss in place of accuracy. Negative if the
    last stage is the best.

    Args:
        losses: {corpus: held-out loss} after each stage, in order.
        corpora: Corpora to report; None for all.
    """
    if len(losses) < 2:
        return {}
    last = losses[-1]
    return {
        name: last[name] - min(before[name] for before in losses[:-1] if name in before)
        for name in (corpora if corpora is not None else last)
        if name in last and any(name in before for before in losses[:-1])
    }
