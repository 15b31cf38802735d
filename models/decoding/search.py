"""Search for what follows a prompt: greedy, by drawing, and with beams.

A search is told the log probabilities of the next token of its hypotheses and says which of them go
on, with which token. It knows nothing of networks and batches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from models.decoding.filters import NEVER, allowed, drawn_from, likeliest
from models.decoding.settings import Generation


@dataclass(frozen=True)
class Generated:
    """What follows a prompt.

    Attributes:
        tokens: New ids, without the stop token.
        log_probability: Sum of the log probabilities of all new tokens, the stop token included, in
            nats, before anything is filtered.
        stopped: Whether a stop token ended it, not the limit, and not that no token might follow.
    """

    tokens: tuple[int, ...]
    log_probability: float
    stopped: bool


class Chain:
    """One hypothesis: the likeliest token at each step, or a drawn one.

    Args:
        prompt: Its ids.
        stops: Ids that end a text.
        settings: Those of generation.
        rng: What draws; one number a step.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        stops: Collection[int],
        settings: Generation,
        rng: np.random.Generator,
    ):
        self._tokens, self._first = list(prompt), len(prompt)
        self._stops, self._settings, self._rng = stops, settings, rng
        self._log_p = 0.0
        self.done = False
        self._stopped = False

    def step(self, log_p: np.ndarray) -> list[tuple[int, int]]:
        """Choose the next token.

        Args:
            log_p: (1, V) log probabilities of the next token.

        Returns:
            [(0, token)], or nothing if that was the last one, or none may follow.
        """
        new = len(self._tokens) - self._first
        left = allowed(log_p[0], self._tokens, new, self._stops, self._settings)
        if left.max() == NEVER:
            self.done = True
            return []
        if self._settings.sample:
            token = _drawn(drawn_from(left, self._settings), self._rng.random())
        else:
            token = int(left.argmax())
        self._log_p += float(log_p[0, token])
        self._stopped = token in self._stops
        if not self._stopped:
            self._tokens.append(token)
        self.done = self._stopped or new + 1 >= self._settings.max_new_tokens
        return [] if self.done else [(0, token)]

    @property
    def best(self) -> Generated:
        """The hypothesis."""
        return Generated(tuple(self._tokens[self._first :]), self._log_p, self._stopped)


class Beams:
    """The likeliest hypotheses, several at a time, as transformers searches them.

    Of each step's 2k likeliest continuations, those among the first k that end are finished; the
    best k others go on. It ends when k are finished and the best of those that go on, scored at
    their present length, is no better than the worst of them.

    Args:
        prompt: Its ids.
        stops: Ids that end a text.
        settings: Those of generation; k is ``beams``.
    """

    def __init__(self, prompt: Sequence[int], stops: Collection[int], settings: Generation):
        self._prompt, self._stops, self._settings = list(prompt), stops, settings
        self._going: list[tuple[float, list[int]]] = [(0.0, [])]
        self._finished: list[tuple[float, Generated]] = []
        self.done = False

    def step(self, log_p: np.ndarray) -> list[tuple[int, int]]:
        """Choose the next tokens.

        Args:
            log_p: (hypotheses, V) log probabilities of the next token of those that go on, in
                their order.

        Returns:
            [(number of the hypothesis before, its next token)] of those that go on, best first. One
            that no token may follow does not.
        """
        k, size = self._settings.beams, log_p.shape[-1]
        new = len(self._going[0][1])
        sums = np.concatenate(
            [
                score + allowed(each, [*self._prompt, *tokens], new, self._stops, self._settings)
                for (score, tokens), each in zip(self._going, log_p, strict=True)
            ]
        )
        order = likeliest(sums, 2 * k)
        going: list[tuple[float, list[int]]] = []
        chosen: list[tuple[int, int]] = []
        at_limit = new + 1 >= self._settings.max_new_tokens
        for rank, place in enumerate(order.tolist()):
            score = float(sums[place])
            if score == NEVER:
                break
            number, token = divmod(place, size)
            stopped = token in self._stops
            tokens = self._going[number][1]
            if stopped or at_limit:
                if rank < k:
                    whole = tokens if stopped else [*tokens, token]
                    self._finish(score, Generated(tuple(whole), score, stopped), new + 1)
            elif len(going) < k:
                going.append((score, [*tokens, token]))
                chosen.append((number, token))
        self._going = going or self._going
        full = len(self._finished) == k
        worst = self._finished[-1][0] if full else NEVER
        best = self._score(going[0][0], new + 1) if going else NEVER
        self.done = not going or (full and best <= worst)
        return [] if self.done else chosen

    def _finish(self, score: float, found: Generated, length: int) -> None:
        """Keep a finished hypothesis if it is among the best k."""
        self._finished.append((self._score(score, length), found))
        self._finished.sort(key=lambda each: -each[0])
        del self._finished[self._settings.beams :]

    def _score(self, log_p: float, length: int) -> float:
        settings = self._settings
        return log_p / (length + settings.length_offset) ** settings.length_penalty

    @property
    def best(self) -> Generated:
        """The finished hypothesis with the best score; without one, the best that went on."""
        if self._finished:
            return self._finished[0][1]
        score, tokens = self._going[0]
        return Generated(tuple(tokens), score, stopped=False)


def _drawn(p: np.ndarray, at: float) -> int:
    """The token at which the cumulated probability passes `at`, in [0, 1)."""
    token = int(np.searchsorted(np.cumsum(p), at, side="right"))
    return min(token, int(np.flatnonzero(p)[-1]))
