"""Independent yes-or-no questions about pairs of vectors: loss, gradients and their right answers.

Both kinds of output of word2vec are such questions. With negative sampling they ask whether a word
stands in the window; with hierarchical softmax, whether the path to it turns left at a node. Where
the inputs of a stretch of text are asked about the same outputs, all of it is matrix products;
where each is asked about outputs of its own, it is a list of questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from models.vectors.tables import grouped, summed


@dataclass(frozen=True)
class QuestionSums:
    """Sums over questions.

    Attributes:
        loss: -log of the probability of the right answers, nats.
        right: Number of right answers.
        questions: Number of questions.
        pairs: Number of predicted words.
    """

    loss: float = 0.0
    right: float = 0.0
    questions: float = 0.0
    pairs: float = 0.0

    def __add__(self, other: QuestionSums) -> QuestionSums:
        return QuestionSums(
            self.loss + other.loss,
            self.right + other.right,
            self.questions + other.questions,
            self.pairs + other.pairs,
        )


class Questions(Protocol):
    """What the T inputs of each of C stretches are asked."""

    @property
    def rows(self) -> np.ndarray:
        """Rows of the output table that are asked about, (…) int."""
        ...

    def of_inputs(self) -> np.ndarray:
        """How many questions each input is asked, (C, T) float32."""
        ...

    def answered(
        self, inputs: np.ndarray, outputs: np.ndarray, pairs: float
    ) -> tuple[QuestionSums, np.ndarray]:
        """The loss, and its gradient for the logits.

        Args:
            inputs: (C, T, D).
            outputs: (…, D), the vectors of `rows`.
            pairs: Number of predicted words behind the questions.

        Reference:
            Mikolov et al. 2013, arXiv 1310.4546, equations 3 and 4: yes is log σ(u·v), no is
            log σ(-u·v).
        """
        ...

    def for_inputs(self, gradient: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """The loss's gradient for the inputs, (C, T, D), by that for the logits."""
        ...

    def for_outputs(
        self, gradient: np.ndarray, inputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The loss's gradient for rows of the output table, by that for the logits.

        Returns:
            The rows that are asked about, each once, (m,); the gradient for each (m, D); and its
            number of questions (m,) float32.
        """
        ...


@dataclass(frozen=True)
class SharedQuestions:
    """A stretch asks all of its inputs about the same R outputs.

    Outputs come before inputs, so that the larger products read no transposed matrix.

    Attributes:
        rows: (C, R) int.
        asked: (C, R, T) float32, how often an input is asked about an output, 0 for most; need not
            be whole.
        yes: (C, Y, T) float32, how many of these questions have the answer yes, about the first Y
            outputs; about the others it is never yes.
    """

    rows: np.ndarray
    asked: np.ndarray
    yes: np.ndarray

    def of_inputs(self) -> np.ndarray:
        """As `Questions.of_inputs`."""
        # A product, because `sum` along an axis takes eight times as long.
        return (np.ones_like(self.asked[0, :, 0]) @ self.asked).reshape(len(self.asked), -1)

    def answered(
        self, inputs: np.ndarray, outputs: np.ndarray, pairs: float
    ) -> tuple[QuestionSums, np.ndarray]:
        """As `Questions.answered`; the gradient is (C, R, T)."""
        # A copy, because products with a transposed view of a small matrix are slower.
        logits = outputs @ np.ascontiguousarray(inputs.swapaxes(1, 2))
        return _answered(logits, self.asked, self.yes, pairs)

    def for_inputs(self, gradient: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """As `Questions.for_inputs`."""
        return np.ascontiguousarray(gradient.swapaxes(1, 2)) @ outputs

    def for_outputs(
        self, gradient: np.ndarray, inputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `Questions.for_outputs`."""
        of_rows = (gradient @ inputs).reshape(-1, inputs.shape[-1])  # (C · R, D)
        asked = self.asked @ np.ones_like(self.asked[0, 0])  # (C, R); as in `of_inputs`
        rows, total, asked = summed(self.rows.ravel(), of_rows, asked.ravel())
        return rows, total, asked


@dataclass(frozen=True)
class OwnQuestions:
    """Each input is asked about outputs of its own, each once.

    Attributes:
        rows: (Q,) int, ordered by input.
        number: (C, T) int, how many of them are an input's.
        yes: (Q,) float32, 1 where the answer is yes, else 0.
    """

    rows: np.ndarray
    number: np.ndarray
    yes: np.ndarray

    def of_inputs(self) -> np.ndarray:
        """As `Questions.of_inputs`."""
        return self.number.astype(np.float32)

    def answered(
        self, inputs: np.ndarray, outputs: np.ndarray, pairs: float
    ) -> tuple[QuestionSums, np.ndarray]:
        """As `Questions.answered`; the gradient is (Q,)."""
        asking = np.repeat(inputs.reshape(-1, inputs.shape[-1]), self.number.ravel(), axis=0)
        logits = np.einsum("qd,qd->q", asking, outputs)
        return _answered(logits, np.ones_like(logits), self.yes, pairs)

    def for_inputs(self, gradient: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """As `Questions.for_inputs`."""
        borders = np.append(0, np.cumsum(self.number))
        shape = (self.number.size, len(gradient))
        of_inputs = csr_array((gradient, np.arange(len(gradient)), borders), shape=shape)
        return (of_inputs @ outputs).reshape(*self.number.shape, -1)

    def for_outputs(
        self, gradient: np.ndarray, inputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `Questions.for_outputs`."""
        order, borders, rows = grouped(self.rows)
        asking = np.repeat(np.arange(self.number.size), self.number.ravel())
        shape = (len(rows), self.number.size)
        of_rows = csr_array((gradient[order], asking[order], borders), shape=shape)
        total = of_rows @ inputs.reshape(-1, inputs.shape[-1])
        return rows, total, np.diff(borders).astype(np.float32)


def _answered(
    logits: np.ndarray, asked: np.ndarray, yes: np.ndarray, pairs: float
) -> tuple[QuestionSums, np.ndarray]:
    """The score, and the loss's gradient for logits; the last three arrays are as the questions.

    `yes` is about the first outputs, along the last axis but one, or the only one.
    """
    some = (slice(None), slice(yes.shape[1])) if yes.ndim > 1 else ...
    half = np.tanh(0.5 * logits)
    gradient = 0.5 * half
    gradient += 0.5  # σ(x) = 1/2 + tanh(x/2)/2
    gradient *= asked
    gradient[some] -= yes
    positive = logits > 0
    # A no is right below 0. What has the answer yes is right above 0 instead.
    number = float(asked.sum(dtype=np.float64))
    right = number - float(np.vdot(asked, positive))
    right += 2.0 * float(np.vdot(yes, positive[some])) - float(yes.sum(dtype=np.float64))
    # -log σ(-x) = (x + |x|)/2 + log 2 - log(1 + |tanh(x/2)|), which never overflows.
    np.abs(half, out=half)
    half += 1.0
    loss = math.log(2.0) * number - float(np.vdot(asked, np.log(half, out=half)))
    loss -= float(np.vdot(yes, logits[some]))
    loss += 0.5 * float(np.vdot(asked, logits))
    loss += 0.5 * float(np.vdot(asked, np.abs(logits, out=logits)))
    return QuestionSums(loss, right, number, pairs), gradient
