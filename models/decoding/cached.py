"""A reader that keeps what it has read, for whatever computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# From token ids and mask, and what is kept, to the logits after the last token, (B, V), and what is
# kept then; all in one list, as graphs take it.
Read = Callable[..., Sequence[Any]]


class CachedReader:
    """Reads prompts, then token by token (`models.decoding.generate.Reader`).

    Args:
        longest: Tokens that the network can read.
        start: (ids, mask) reads prompts, (B, T).
        step: (ids, mask, *kept) reads one more token, (B, 1), of each text; the mask is of all.
        chosen: (rows, ids, mask, *kept) reads one more token of some texts, of those `rows`, (B',).
        begin: Ids with which a text begins that is written apart from its prompt, as
            encoder–decoders do; `start` reads them, too, and the mask stays the prompt's. Empty for
            texts that continue their prompts.
    """

    def __init__(
        self, longest: int, start: Read, step: Read, chosen: Read, begin: Sequence[int] = ()
    ):
        self.longest, self.begin = longest, tuple(begin)
        self._start, self._step, self._chosen = start, step, chosen
        self._kept: Sequence[Any] = ()
        self._mask = np.zeros((0, 0), np.int32)

    def start(self, token_ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """Read prompts, (B, T) each; logits of the next token, (B, V)."""
        self._mask = np.asarray(padding_mask, np.int32)
        return self._answer(self._start(np.asarray(token_ids, np.int32), self._mask))

    def step(self, rows: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Read one more token, (B',), of the texts `rows`; logits of the one after it, (B', V)."""
        same = np.array_equal(rows, np.arange(len(self._mask)))
        new = np.ones((len(rows), int(not self.begin)), np.int32)
        self._mask = np.concatenate([self._mask[rows], new], axis=1)
        ids = np.asarray(token_ids, np.int32)[:, None]
        if same:
            return self._answer(self._step(ids, self._mask, *self._kept))
        rows = np.asarray(rows, np.int32)
        return self._answer(self._chosen(rows, ids, self._mask, *self._kept))

    def _answer(self, read: Sequence[Any]) -> np.ndarray:
        logits, *self._kept = read
        return np.asarray(logits)
