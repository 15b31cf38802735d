"""A reader that keeps what it has read, for whatever computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# To logits (…, V) and what is kept, or to what is kept; all in one list, as graphs take it.
Read = Callable[..., Sequence[Any]]

ROOM = 32  # steps for which there is room before what is kept is copied


class CachedReader:
    """Reads prompts, then token by token (`models.decoding.generate.Reader`).

    What is kept of a prompt and of all that was read after it stands in C places. The texts that
    continue the prompt share them: each sees the places of its own tokens, so texts that go on
    from another one are nothing but other rows of a mask.

        prompt       the  cat
        texts                  sat  sleeps
                                           on  and  by         places  0 1 2 3 4 5 6
        the cat sat on                                  sees           1 1 1 0 1 0 0
        the cat sleeps and                                             1 1 0 1 0 1 0
        the cat sat by                                                 1 1 1 0 0 0 1

    Places that no text sees are given up when there is no room left.

    Args:
        longest: Tokens that the network can read.
        start: (ids, mask) reads prompts, (P, T); logits (P, V) and what is kept.
        kernel: () is the output matrix as `step` takes it, (D, V): asked for once a reading, as its
            weights may change from one to the next.
        step: (ids, seen, at, kernel, *kept) reads one more token of each text, (P, N) of N texts a
            prompt, which sees the places (P, N, C) and stands in place `at` + its number; logits
            (P · N, V) and what is kept, in the memory of what was.
        moved: (prompts, places, *kept) is what is kept for some prompts, (P',), at places (P', C')
            of those before.
        begin: Ids with which a text begins that is written apart from its prompt, as
            encoder–decoders do: `start` reads them, too, and they stand in the first places, where
            a prompt's tokens do otherwise. Empty for texts that continue their prompts.
        beams: N that `step` is made for; None for any.
    """

    def __init__(
        self,
        longest: int,
        start: Read,
        kernel: Callable[[], Any],
        step: Read,
        moved: Read,
        begin: Sequence[int] = (),
        beams: int | None = None,
    ):
        self.longest, self.begin = longest, tuple(begin)
        self._beams = beams
        self._start, self._kernel, self._step, self._moved = start, kernel, step, moved
        self._kept: Sequence[Any] = ()
        self._laid_out: Any = None  # the kernel, from the first step of a reading on
        self._seen = np.zeros((0, 0, 0), bool)  # (P, N, C)
        self._rows = np.zeros(0, np.intp)  # where each text of the last reading is among P · N
        self._at = 0  # the first free place

    def start(self, token_ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """Read prompts, (P, T) each; logits of the next token, (P, V)."""
        mask = np.asarray(padding_mask, np.int32)
        logits, *self._kept = self._start(np.asarray(token_ids, np.int32), mask)
        self._laid_out = None
        if self.begin:
            mask = np.ones((len(mask), len(self.begin)), np.int32)
        self._seen, self._at = mask.astype(bool)[:, None], mask.shape[1]
        self._rows = np.arange(len(mask))
        return np.asarray(logits)

    def step(self, rows: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Read one more token, (B',), of the texts `rows`; logits of the one after it, (B', V)."""
        prompt, text = np.divmod(self._rows[rows], self._seen.shape[1])
        seen = self._seen[prompt, text]  # (B', C)
        prompts, prompt = np.unique(prompt, return_inverse=True)
        text = _numbers(prompt)
        size = (len(prompts), self._beams or int(text.max()) + 1)
        if size[0] < len(self._seen) or self._at + size[1] > seen.shape[1]:
            seen = self._move(prompts, prompt, seen, size[1])
        ids = np.zeros(size, np.int32)
        ids[prompt, text] = token_ids
        self._seen = np.zeros((*size, seen.shape[1]), bool)
        self._seen[prompt, text] = seen
        given = self._seen.copy()  # a backend may read it where it is, and later
        if self._laid_out is None:
            self._laid_out = self._kernel()
        at = np.int32(self._at)
        logits, *self._kept = self._step(ids, given, at, self._laid_out, *self._kept)
        self._seen[prompt, text, self._at + text] = True
        self._at += size[1]
        self._rows = prompt * size[1] + text
        return np.asarray(logits)[self._rows]

    def _move(
        self, prompts: np.ndarray, prompt: np.ndarray, seen: np.ndarray, texts: int
    ) -> np.ndarray:
        """Keep the places of some prompts that their texts see, and make room after them.

        Args:
            prompts: (P',) prompts that go on.
            prompt: (B',) which of these each text has.
            seen: (B', C) what it sees.
            texts: Texts a prompt.

        Returns:
            (B', C') what each text sees.
        """
        used = np.zeros((len(prompts), seen.shape[1]), bool)
        np.logical_or.at(used, prompt, seen)
        self._at = int(used.sum(axis=1).max())
        places = np.argsort(~used, axis=1, kind="stable")[:, : self._at]
        room = np.zeros((len(prompts), ROOM * texts), np.intp)  # whatever is there
        all_places = np.concatenate([places, room], axis=1).astype(np.int32)
        self._kept = self._moved(prompts.astype(np.int32), all_places, *self._kept)
        left = np.take_along_axis(seen, places[prompt], axis=1)
        return np.concatenate([left, np.zeros((len(seen), room.shape[1]), bool)], axis=1)


def _numbers(groups: np.ndarray) -> np.ndarray:
    """The number of each among those of its group, from 0."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    numbers = np.empty_like(groups)
    numbers[order] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers
