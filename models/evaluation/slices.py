"""Slices: subsets of rows that are scored separately, because a mean can hide a loss in one."""

from __future__ import annotations

from collections.abc import Sequence

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
