"""The right one of a row's choices, by its number from 0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fourstage.errors import ContractViolation
from models.protocols import Column, Metric

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


def choice_of(answer: Any) -> int | None:
    """The number of the chosen text; None for what is no whole number from 0."""
    return int(answer) if isinstance(answer, str) and _NUMBER.fullmatch(answer) else None


def _accuracy(sums: np.ndarray) -> np.ndarray:
    """Share of rows with the right choice."""
    return sums[..., 1] / np.maximum(sums[..., 0], 1)


class Choice:
    """A kind of answer: one of the row's own choices.

    Attributes:
        metrics: ``accuracy``, 0-1.
        usual: Default metrics; the last one selects weights.
        is_class: Whether an answer is one of a few classes. A choice is not: its number means
            another text in each row.
        is_served: Whether a model that answers so can be packaged and promoted.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {"accuracy": _accuracy}
    usual: ClassVar[tuple[str, ...]] = ("accuracy",)
    is_class: ClassVar[bool] = False
    is_served: ClassVar[bool] = True

    @staticmethod
    def names(answers: Iterable[str]) -> tuple[str, ...]:
        """Choices have no names that rows share."""
        return ()

    @staticmethod
    def statistics(true: Column, answers: Sequence[Column]) -> list[Any]:
        """For each row 1, and whether its choice is right, per model.

        Args:
            true: (rows,) numbers of the right choices.
            answers: One (rows,) column of numbers per model.

        Returns:
            One sparse (rows, 2) matrix per model.

        Raises:
            ContractViolation: An answer is no number of a choice.
        """
        from scipy.sparse import csr_array

        right, *said = (_numbers(column) for column in (true, *answers))
        hits = [column == right for column in said]
        return [csr_array(np.stack([np.ones(len(right)), hit], axis=1)) for hit in hits]


def _numbers(answers: Column) -> np.ndarray:
    found = [choice_of(answer) for answer in answers]
    if None in found:
        raise ContractViolation(
            f"answers: expected the number of a choice for each of {len(found)} rows, got something"
            f" else for row {found.index(None) + 1}"
        )
    return np.array(found, np.int64)
