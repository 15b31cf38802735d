"""Answers to whole rows, of what a packaged model computes for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

AT_ONCE = 32  # rows that are read together: memory grows with them and with the longest


def in_parts(serve: Callable[..., np.ndarray], *columns: Sequence[str]) -> list[np.ndarray]:
    """What the graph computes for any number of rows, (N,) for each; it reads a few at a time.

    Args:
        serve: (b,) texts, for pairs (b,) second texts → (b, N).
        columns: One list of texts, or two for pairs.
    """
    return [
        row
        for first in range(0, len(columns[0]), AT_ONCE)
        for row in serve(*(column[first : first + AT_ONCE] for column in columns))
    ]


def row_answer(kind: str, values: np.ndarray, head: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a row.

    Args:
        kind: ``label``, ``label_set`` or ``number``.
        values: (N,) probabilities of the labels; of a number, (1,) the number.
        head: ``names`` of the labels, and ``threshold`` of a set.

    Returns:
        Of a label ``label``, ``score`` and ``probabilities``; of a set ``labels``, ``score``, that
        of all labels taken as independent, ``probabilities``, and as JSON ``answer``; of a number
        ``number``, ``score`` None, and as JSON ``answer``.
    """
    if kind == "number":
        number = float(str(np.float32(values[0])))  # in its shortest spelling
        return {"number": number, "score": None, "answer": json.dumps(number)}
    shares = np.asarray(values, np.float64)
    names = head["names"]
    probabilities = dict(zip(names, values.tolist(), strict=True))
    if kind == "label":
        best = int(values.argmax())
        return {"label": names[best], "score": float(values[best]), "probabilities": probabilities}
    chosen = shares > head["threshold"]
    labels = sorted(name for name, there in zip(names, chosen, strict=True) if there)
    return {
        "labels": labels,
        "score": float(np.where(chosen, shares, 1 - shares).prod()),
        "probabilities": probabilities,
        "answer": json.dumps(labels, ensure_ascii=False),
    }
