"""A set of labels per row, none to all of them, with F1 and exact match."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fourstage.errors import ContractViolation
from fourstage.label_order import in_order
from models.protocols import Column, Metric


def set_of(answer: Any) -> frozenset[str] | None:
    """The labels of an answer; None for what is not a JSON array of names."""
    try:
        names = json.loads(answer)
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return frozenset(names)


def written(labels: Iterable[str]) -> str:
    """A set of labels as an answer: a sorted JSON array."""
    return json.dumps(sorted(set(labels)), ensure_ascii=False)


# The columns of `LabelSet.statistics`: for each label its hits, its correct and its predicted rows;
# then the number of rows, and of rows whose set is correct.


def _counts(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., N) hits; (..., N) correct plus predicted rows of each label."""
    counts = sums[..., :-2]
    hits, true, predicted = np.moveaxis(counts.reshape(*counts.shape[:-1], 3, -1), -2, 0)
    return hits, true + predicted


def _micro_f1(sums: np.ndarray) -> np.ndarray:
    """F1 of all labels together; 0 where no label is correct or predicted."""
    hits, there = _counts(sums)
    return 2 * hits.sum(-1) / np.maximum(there.sum(-1), 1)


def _macro_f1(sums: np.ndarray) -> np.ndarray:
    """Mean F1 of the labels that occur in the rows or in the predictions."""
    hits, there = _counts(sums)
    scores = 2 * hits / np.maximum(there, 1)
    return scores.sum(-1) / np.maximum((there > 0).sum(-1), 1)


def _exact_match(sums: np.ndarray) -> np.ndarray:
    """Share of rows whose whole set is correct."""
    return sums[..., -1] / np.maximum(sums[..., -2], 1)


class LabelSet:
    """A kind of answer: a set of labels per row, a JSON array of names.

    Attributes:
        metrics: ``micro_f1``, ``macro_f1`` and ``exact_match`` (subset accuracy), 0-1.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "micro_f1": _micro_f1,
        "macro_f1": _macro_f1,
        "exact_match": _exact_match,
    }
    usual: ClassVar[tuple[str, ...]] = ("exact_match", "macro_f1", "micro_f1")
    is_class: ClassVar[bool] = False
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """The labels of all sets, in the order of a head's outputs."""
        return tuple(in_order(name for answer in answers for name in set_of(answer) or ()))

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """Each row's hits, correct and predicted labels, and whether its set is correct, per model.

        Args:
            true: (rows,) correct sets.
            answers: One (rows,) column of sets per model.

        Returns:
            One sparse (rows, 3 · N + 2) matrix per model, where N is the number of labels that
            occur.

        Raises:
            ContractViolation: An answer is not a JSON array of names.
        """
        columns = [_sets(column) for column in (true, *answers)]
        names = sorted({name for column in columns for row in column for name in row})
        number = {name: i for i, name in enumerate(names)}
        return [_statistics(columns[0], column, number) for column in columns[1:]]


def _sets(answers: Column) -> list[frozenset[str]]:
    found: list[frozenset[str]] = []
    for row, answer in enumerate(answers, 1):
        labels = set_of(answer)
        if labels is None:
            raise ContractViolation(
                f"answers: expected a JSON array of label names for each of {len(answers)} rows, "
                f"got something else for row {row}"
            )
        found.append(labels)
    return found


def _statistics(
    true: Sequence[frozenset[str]], said: Sequence[frozenset[str]], number: Mapping[str, int]
) -> Any:
    """The sparse matrix of one model."""
    from scipy.sparse import csr_array

    size = len(number)
    rows: list[int] = []
    columns: list[int] = []
    for row, (right, given) in enumerate(zip(true, said, strict=True)):
        own = [
            *(number[name] for name in right & given),
            *(size + number[name] for name in right),
            *(2 * size + number[name] for name in given),
            3 * size,
            *([3 * size + 1] if right == given else []),
        ]
        rows += [row] * len(own)
        columns += own
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(true), 3 * size + 2))
