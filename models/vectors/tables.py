"""Tables of vectors whose rows are updated one here and one there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

# Gradients of a question are stable up to a rate of 8 / |x|², and lengths of vectors are about 2.
MOST_AT_ONCE = 4.0


def grouped(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the same row numbers stand.

    Args:
        rows: (n,) int, row numbers, some of them several times.

    Returns:
        Places (n,) ordered by row number, and among the same by place; the borders (m + 1,) of the
        groups in that order; and the row numbers that occur (m,), ascending.
    """
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.ones(len(rows), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    return order, np.append(starts, len(rows)), ordered[starts]


def summed(rows: np.ndarray, *parts: np.ndarray) -> tuple[np.ndarray, ...]:
    """What belongs to the same row, added up in the order in which it came.

    Args:
        rows: (n,) int, row numbers, some of them several times.
        parts: (n, …) what is added up.

    Returns:
        The row numbers that occur (m,), ascending, and the sums of each part (m, …).
    """
    order, borders, found = grouped(rows)
    # Row k of a sparse matrix of ones picks what belongs to the k-th row number. `add.reduceat` and
    # `add.at` do the same forty times more slowly.
    ones = np.ones(len(rows), parts[0].dtype)
    picked = csr_array((ones, order, borders), shape=(len(found), len(rows)))
    return found, *(picked @ part for part in parts)


def step_rates(questions: np.ndarray, rate: float) -> np.ndarray:
    """The rate of each row, (m,) float32, given its number of questions (m,)."""
    return np.minimum(rate, MOST_AT_ONCE / np.maximum(questions, 1.0)).astype(np.float32)


@dataclass(frozen=True)
class Table:
    """A table with one row for each word.

    Attributes:
        array: (V, D) float32, changed in place.
    """

    array: np.ndarray

    def vectors(self, words: np.ndarray) -> np.ndarray:
        """The vectors of words, (…) → (…, D)."""
        return np.take(self.array, words, axis=0)

    def descend(
        self, words: np.ndarray, gradients: np.ndarray, questions: np.ndarray, rate: float
    ) -> None:
        """Go down the gradients of words by a rate.

        Where a word had more questions than `MOST_AT_ONCE` / rate, it goes as far as so many would
        take it. One by one, later ones would have found it moved; all at once, they would push it
        far beyond.

        Args:
            words: (…).
            gradients: (…, D).
            questions: (…) float32, how many questions each gradient is the sum of.
            rate: Learning rate.
        """
        rows, total, asked = summed(
            words.ravel(), gradients.reshape(-1, gradients.shape[-1]), questions.ravel()
        )
        self.step(rows, total, asked, rate)

    def step(self, rows: np.ndarray, total: np.ndarray, asked: np.ndarray, rate: float) -> None:
        """Go down the gradients of rows, each of which is there once.

        Args:
            rows: (m,).
            total: (m, D), the gradient of each.
            asked: (m,), how many questions it is the sum of.
            rate: Learning rate.
        """
        moved = np.take(self.array, rows, axis=0)
        moved -= step_rates(asked, rate)[:, None] * total
        self.array[rows] = moved
