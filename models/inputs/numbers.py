"""The numbers that heads learn from."""

from __future__ import annotations

import numpy as np

from fourstage.errors import ContractViolation
from models.answers.number import numbers_of
from models.inputs.rows import check_answers
from models.protocols import Column, TokenisedRows

_LARGEST = float(np.finfo(np.float32).max)


def single_precision(answers: Column) -> np.ndarray:
    """(rows,) float32, as heads compute; NaN for what is no such number."""
    numbers = numbers_of(answers)
    return np.where(np.abs(numbers) <= _LARGEST, numbers, np.nan).astype(np.float32)


def training_numbers(head: str, rows: TokenisedRows) -> np.ndarray:
    """The numbers of the training rows that have one, as float64 and not all the same.

    Raises:
        ContractViolation: Answers are not numbers, or are all the same.
    """
    numbers = single_precision(rows.answers).astype(np.float64)
    check_answers(head, rows, np.isfinite(numbers).tolist(), "a 32-bit number")
    known = numbers[np.isfinite(numbers)]
    if known.min() == known.max():
        raise ContractViolation(
            f"head.{head}: expected training rows with different 32-bit numbers,"
            f" got {len(known):,} rows with the same; look at the answers of the train split"
        )
    return known
