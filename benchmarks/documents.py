"""Tokenised documents in memory, as benchmarks train on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Documents:
    """A `models.protocols.TokenisedCorpus`; every token begins a word.

    Args:
        ids: (n,) int32 token ids of each document.
        sentence: Tokens of a sentence; None: a document is one sentence.
    """

    def __init__(self, ids: Sequence[np.ndarray], sentence: int | None = None):
        self._ids, self._sentence = ids, sentence
        self.lengths = np.array([len(each) for each in ids], np.int64)
        self.num_tokens = int(self.lengths.sum())

    def __len__(self) -> int:
        return len(self._ids)

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Token ids (n,), lengths of sentences, and a unit at each token."""
        ids = self._ids[i]
        ends = [*range(0, len(ids), self._sentence or len(ids)), len(ids)]
        return ids, np.diff(ends).astype(np.int32), np.ones(len(ids), np.uint8)
