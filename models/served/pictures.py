"""Answers to rows with pictures, by a packaged model of a network that sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from models.served.rows import row_answer

AT_ONCE = 32  # rows that are read together

Regions = tuple[np.ndarray, np.ndarray]  # boxes (n, 4) and features (n, E) of a picture, n >= 1


def stacked(found: Sequence[Regions]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The regions of rows' pictures: `models.inputs.rows.seen_regions`, as wide as the call needs.

    Args:
        found: Of each row.

    Returns:
        Features (B, O, E), boxes (B, O, 4) float32 and mask (B, O) int32.
    """
    shape = len(found), max(len(boxes) for boxes, _ in found)
    features = np.zeros((*shape, found[0][1].shape[1]), np.float32)
    boxes, mask = np.zeros((*shape, 4), np.float32), np.zeros(shape, np.int32)
    for row, (own_boxes, own) in enumerate(found):
        features[row, : len(own)], boxes[row, : len(own)] = own, own_boxes
        mask[row, : len(own)] = 1
    return features, boxes, mask


def predict_pictured(
    rows: Sequence[Sequence[str]],
    pictures: Sequence[str],
    look: Callable[[str], Regions | str],
    serve: Callable[..., np.ndarray],
    head: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The answer to each row, or why its picture gives none.

    Args:
        rows: One text or two of each.
        pictures: The picture of each, as `look` reads it; one that comes again is not read again.
        look: A picture → its regions, or the reason why it has none.
        serve: (b,) texts, for pairs (b,) second texts, features (b, O, E), boxes (b, O, 4) and mask
            (b, O) → (b, N) what the graph computes for each row.
        head: ``answers``, and what `row_answer` reads.

    Returns:
        As `row_answer`; of a row whose picture has no regions, ``label`` and ``score`` None and
        ``error``, the reason.
    """
    answers: list[dict[str, Any]] = []
    seen: dict[str, Regions | str] = {}
    for first in range(0, len(rows), AT_ONCE):
        part = range(first, min(first + AT_ONCE, len(rows)))
        looks: dict[int, Regions] = {}
        faults: dict[int, str] = {}
        for row in part:
            if pictures[row] not in seen:
                seen[pictures[row]] = look(pictures[row])
            found = seen[pictures[row]]
            if isinstance(found, str):
                faults[row] = found
            else:
                looks[row] = found
        values: dict[int, np.ndarray] = {}
        if looks:
            columns = map(list, zip(*(rows[row] for row in looks), strict=True))
            asked = serve(*columns, *stacked(list(looks.values())))
            values = dict(zip(looks, asked, strict=True))
        answers += [
            {"label": None, "score": None, "error": faults[row]}
            if row in faults
            else row_answer(head["answers"], values[row], head)
            for row in part
        ]
    return answers
