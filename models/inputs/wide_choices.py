"""Rows of choices as the wide part of a head reads them, and what it learns from those of training.

row        text | choice 0 | choice 1
pairs      text, choice 0 → n-grams of both, how alike they are → one score
           text, choice 1 → …                                   → one score
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from models.inputs.hashed_ngrams import KINDS
from models.inputs.wide_rows import Texts, WideRows
from models.linear_machine import Machine, factor_of, learned
from models.protocols import Batch, TokenisedRows

LEFT_OUT = -1e9  # score of a choice that is not there


class Pairs:
    """The text of each row with each of its choices, one pair after the other.

    Args:
        rows: Rows whose texts are a text and its choices.
        entries: Numbers of the rows; all by default.

    Attributes:
        there: (B, C) bool, which choices each row has; C is the largest number of them.
    """

    def __init__(self, rows: Texts, entries: Sequence[int] | np.ndarray | None = None):
        numbers = range(len(rows)) if entries is None else entries
        texts = [rows.texts(int(row)) for row in numbers]
        self.pairs = [(text, choice) for text, *choices in texts for choice in choices]
        counts = np.array([len(own) - 1 for own in texts])
        self.there = np.arange(counts.max(initial=0)) < counts[:, None]

    def __len__(self) -> int:
        return len(self.pairs)

    def texts(self, pair: int) -> tuple[np.ndarray, ...]:
        """The text and the choice of a pair."""
        return self.pairs[pair]

    def by_row(self, values: np.ndarray, fill: float = 0) -> np.ndarray:
        """What belongs to each pair, (pairs, …), as (B, C, …)."""
        found = np.full((*self.there.shape, *values.shape[1:]), fill, values.dtype)
        found[self.there] = values
        return found


class WideChoices(WideRows):
    """The n-grams of each choice with its text.

    Args:
        context: The stage's constants.
        labels: Returns the numbers of rows' right choices, (rows,); -1 for none.
    """

    def features(self, rows: TokenisedRows, entries: np.ndarray) -> Batch:
        """As `of_rows`; of rows whose scores are known ngram_logits (b, C, 1)."""
        number = max(len(rows.texts(int(row))) for row in entries) - 1
        return {key: value[:, :number] for key, value in super().features(rows, entries).items()}

    def of_rows(self, rows: TokenisedRows, entries: Sequence[int] | np.ndarray) -> Batch:
        """ngram_ids (b, C, K) and ngram_counts (b, C, K, 2) of some rows."""
        own = Pairs(rows, entries)
        return {key: own.by_row(value) for key, value in self.ngrams.of_texts(own.pairs).items()}

    def learned(self, rows: TokenisedRows, groups: Sequence[bytes]) -> Machine:
        """Which pairs are right, from rows of which those of one group have the same texts.

        The factor on a margin is the one under which the softmax over a row's choices fits best.
        """
        own, right = Pairs(rows), self.labels(rows)
        is_right = (np.arange(own.there.shape[1]) == right[:, None]).astype(int)
        is_right[right < 0] = -1
        row_of = np.nonzero(own.there)[0]
        counts = self.counts(own)
        of_row = [groups[row] for row in row_of.tolist()]
        both = learned(counts, is_right[own.there], 2, of_row, KINDS, self.alike(own, counts))
        unseen = own.by_row(both.unseen[:, 1], LEFT_OUT)
        margins = np.where(unseen > LEFT_OUT, unseen, -np.inf)
        factor = np.float32(factor_of(margins, right)[0])
        assert both.alike is not None, "a row of choices is a row of pairs"
        return replace(
            both,
            kernel=factor * both.kernel[:, 1:],
            bias=factor * both.bias[1:],
            unseen=factor * unseen[..., None],
            alike=factor * both.alike[:, 1:],
        )

    def scores(self, wide: Any, rows: Texts) -> np.ndarray:
        """(rows, C, 1) of the wide part."""
        own = Pairs(rows)
        return own.by_row(super().scores(wide, own))
