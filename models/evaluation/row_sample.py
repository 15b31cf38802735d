"""Some of many labelled rows, from which a classifier can be learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def drawn(labels: Sequence[str] | np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """(most,) ascending numbers of rows, drawn by chance.

    If all of them have one label, the last is replaced by one of another label: of one label alone
    no classifier can be learned.

    Args:
        labels: (rows,) labels, of more rows than `most`.
        most: How many rows.
        rng: Draws the rows.
    """
    every = np.asarray(labels, object)
    rows = rng.permutation(len(every))
    others = rows[every[rows] != every[rows[0]]]
    chosen = rows[:most]
    if len(others) and (every[chosen] == every[rows[0]]).all():
        chosen[-1] = others[0]
    return np.sort(chosen)
