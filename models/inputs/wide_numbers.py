"""Rows as the wide part of a head with numbers reads them, and what it learns from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from models import features as keys
from models.inputs.hashed_ngrams import BUCKETS, KINDS
from models.inputs.wide_rows import WideRows, parts, sparse
from models.keras_ops import ops
from models.layers.wide_number import ALIKE, likeness
from models.linear_machine import Machine, inverse_frequency, weighted
from models.number_machine import regressed
from models.protocols import Batch, TokenisedRows


class WideNumbers(WideRows):
    """The n-grams of rows that have a number; those of pairs are compared.

    Args:
        context: The stage's constants.
        labels: Returns the numbers of rows, (rows,), in deviations; NaN for none.
    """

    def learned(self, rows: TokenisedRows, groups: Sequence[bytes]) -> Machine:
        """What is learned from rows, of which those of one group have the same texts."""
        pairs = _are_pairs(rows)
        if pairs:
            idf, features = self._compared(rows)
        else:
            counts = self.counts(rows)
            idf = inverse_frequency(counts).astype(np.float32)
            features = weighted(counts, idf, KINDS)
        weights, bias, unseen = regressed(features, self.labels(rows), groups)
        of = [np.zeros((size, 1), np.float32) for size in (BUCKETS, ALIKE)]
        of[pairs][:, 0] = weights
        return Machine(
            idf, of[0], np.array([bias], np.float32), unseen[:, None].astype(np.float32), of[1]
        )

    def of(self, columns: Sequence[Any]) -> dict[str, Any]:
        """The n-grams of the columns' texts, in a graph; of two columns those of both."""
        return self.ngrams.of_both(columns) if len(columns) > 1 else self.ngrams.of(columns)

    def of_rows(self, rows: TokenisedRows, entries: Sequence[int] | np.ndarray) -> Batch:
        """The n-grams of some rows."""
        return self.ngrams.of_rows(rows, entries, both=_are_pairs(rows))

    def _compared(self, rows: TokenisedRows) -> tuple[np.ndarray, np.ndarray]:
        """IDF of all texts, (BUCKETS,), and how alike the texts of each pair are, (rows, A)."""

        def counted() -> Iterator[Batch]:  # twice: all at once may not fit in memory
            return (self.of_rows(rows, some) for some in parts(rows))

        texts = (
            (part[keys.NGRAM_IDS], part[keys.NGRAM_COUNTS][..., text])
            for part in counted()
            for text in range(2)
        )
        idf = inverse_frequency(sparse(texts), seen=0).astype(np.float32)
        alike = [ops.convert_to_numpy(likeness(part, idf)) for part in counted()]
        return idf, np.concatenate(alike).astype(np.float64)


def _are_pairs(rows: TokenisedRows) -> bool:
    return len(rows.texts(0)) > 1
