"""Spans of a text with a type each, such as entities, scored by exact match.

An answer is JSON, ``[[start, end, "type"], …]``, with offsets in characters. A span is correct if
its borders and its type are. The tests compare every metric with seqeval's.

Reference:
    Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared Task", section 2.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from models.protocols import Column, Metric


def _parts(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(…, types) each: spans that are right, predicted spans, and those that are both."""
    by_type = sums.reshape(*sums.shape[:-1], -1, 3)
    return by_type[..., 0], by_type[..., 1], by_type[..., 2]


def _entity_f1(sums: np.ndarray) -> np.ndarray:
    """F1 over the spans of all types (micro); 0 where there are none."""
    true, predicted, both = (part.sum(-1) for part in _parts(sums))
    return 2 * both / np.maximum(true + predicted, 1)


def _entity_precision(sums: np.ndarray) -> np.ndarray:
    """Share of the predicted spans that are correct."""
    _, predicted, both = (part.sum(-1) for part in _parts(sums))
    return both / np.maximum(predicted, 1)


def _entity_recall(sums: np.ndarray) -> np.ndarray:
    """Share of the true spans that are predicted."""
    true, _, both = (part.sum(-1) for part in _parts(sums))
    return both / np.maximum(true, 1)


def _entity_macro_f1(sums: np.ndarray) -> np.ndarray:
    """Mean F1 of the types that occur in the rows or in the predictions."""
    true, predicted, both = _parts(sums)
    occurs = (true + predicted) > 0
    return (2 * both / np.maximum(true + predicted, 1)).sum(-1) / np.maximum(occurs.sum(-1), 1)


class Spans:
    """A kind of answer: spans of a text, each with a type.

    Attributes:
        metrics: {name: metric of (..., 3 · types) sums: true, predicted and correct spans of each
            type}.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "entity_f1": _entity_f1,
        "entity_precision": _entity_precision,
        "entity_recall": _entity_recall,
        "entity_macro_f1": _entity_macro_f1,
    }
    usual: ClassVar[tuple[str, ...]] = ("entity_f1",)
    is_class: ClassVar[bool] = False
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """The types, sorted."""
        return tuple(sorted({kind for answer in answers if answer for *_, kind in _read(answer)}))

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """Spans of each type in each row: true ones, predicted ones, and those that are both.

        Args:
            true: (rows,) correct answers.
            answers: One (rows,) column of answers per model.

        Returns:
            One sparse (rows, 3 · types) matrix per model.
        """
        from scipy.sparse import csr_array

        columns = [[_read(answer) for answer in column] for column in (true, *answers)]
        types = sorted({kind for column in columns for spans in column for *_, kind in spans})
        number = {kind: i for i, kind in enumerate(types)}
        found = []
        for column in columns[1:]:
            table = np.zeros((len(columns[0]), max(3 * len(types), 3)))
            for row, (right, said) in enumerate(zip(columns[0], column, strict=True)):
                for part, spans in enumerate((right, said, right & said)):
                    for *_, kind in spans:
                        table[row, 3 * number[kind] + part] += 1
            found.append(csr_array(table))
        return found


def _read(answer: str) -> set[tuple[int, int, str]]:
    return {(start, end, kind) for start, end, kind in json.loads(answer or "[]")}
