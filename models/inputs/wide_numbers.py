"""What the wide part of a head learns from rows that have a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.inputs.hashed_ngrams import BUCKETS, KINDS
from models.inputs.wide_rows import WideRows
from models.linear_machine import Machine, inverse_frequency, weighted
from models.number_machine import regressed
from models.protocols import TokenisedRows


class WideNumbers(WideRows):
    """The n-grams of rows that have a number; of pairs only how alike they are is learned from.

    Args:
        context: The stage's constants.
        labels: Returns the numbers of rows, (rows,), in deviations; NaN for none.
    """

    def learned(self, rows: TokenisedRows, groups: Sequence[bytes]) -> Machine:
        """What is learned from rows, of which those of one group have the same texts."""
        counts = self.counts(rows)
        idf = inverse_frequency(counts).astype(np.float32)
        alike = self.alike(rows, counts)
        features = weighted(counts, idf, KINDS) if alike is None else alike
        weights, bias, unseen = regressed(features, self.labels(rows), groups)
        weights = weights[:, None].astype(np.float32)
        kernel = weights if alike is None else np.zeros((BUCKETS, 1), np.float32)
        return Machine(
            idf,
            kernel,
            np.array([bias], np.float32),
            unseen[:, None].astype(np.float32),
            None if alike is None else weights,
        )
