"""A source of chance that says what it was told to, so that an oracle can be written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class ScriptedChance(np.random.Generator):
    """Gives the listed arrays, call by call, whatever the method."""

    def __init__(self, *answers: Sequence):
        super().__init__(np.random.PCG64(0))
        self._answers = [
            np.asarray(answer if np.size(answer) else np.zeros(0, np.int64)) for answer in answers
        ]

    def _next(self, size) -> np.ndarray:
        answer = self._answers.pop(0)
        assert answer.shape == np.zeros(() if size is None else size).shape, (answer.shape, size)
        return answer

    def random(self, size=None, dtype=np.float64, out=None):
        return self._next(size)

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        answer = self._next(size)
        assert (answer < (low if high is None else high)).all()
        return answer

    def binomial(self, n, p, size=None):
        return self._next(np.shape(n))

    def poisson(self, lam=1.0, size=None):
        return self._next(size)

    def permutation(self, x, axis=0):
        answer = self._next(x)
        assert sorted(answer) == list(range(x))
        return answer
