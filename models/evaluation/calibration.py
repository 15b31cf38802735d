"""Calibration: how far a classifier's probabilities are from how often it is right.

Reference: Guo et al. 2017, "On Calibration of Modern Neural Networks", arXiv 1706.04599, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NUM_BINS = 15  # Guo et al.


@dataclass(frozen=True)
class Calibration:
    """Rows in bins of equal width by the probability of the answer; bins without rows are left out.

    Attributes:
        rows: (B,) number of rows.
        confidence: (B,) their mean probability, 0 to 1.
        accuracy: (B,) share of them that is right, 0 to 1.
    """

    rows: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error, 0 to 1: 0 if bins are right as often as said (eq. 3)."""
        return float(np.average(abs(self.accuracy - self.confidence), weights=self.rows))

    @property
    def overconfidence(self) -> float:
        """The mean probability less the share of right answers, -1 to 1."""
        return float(np.average(self.confidence - self.accuracy, weights=self.rows))


def calibration(probability: np.ndarray, right: np.ndarray) -> Calibration:
    """The calibration of some answers.

    Args:
        probability: (rows,) probability of each answer, 0 to 1; at least one row.
        right: (rows,) whether it is right.
    """
    probability, right = np.asarray(probability, np.float64), np.asarray(right, np.float64)
    # A bin has its upper end: (0, 1/15], (1/15, 2/15]…; 0 is in the first.
    place = np.clip(np.ceil(probability * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)
    rows = np.bincount(place, minlength=NUM_BINS)
    there = rows > 0
    confidence, accuracy = (
        np.bincount(place, values, NUM_BINS)[there] / rows[there] for values in (probability, right)
    )
    return Calibration(rows[there], confidence, accuracy)
