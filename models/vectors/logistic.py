"""Independent yes-or-no questions about pairs of vectors: loss, gradients and their right answers.

Both kinds of output of word2vec are such questions. With negative sampling they ask whether a word
stands in the window; with hierarchical softmax, whether the path to it turns left at a node. A
stretch of text asks each of its T inputs about the same R outputs, so that all of it is matrix
products; how often an input is asked about an output is a number, 0 for most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Questions:
    """What C stretches of T inputs each are asked.

    Attributes:
        rows: (C, R) int, rows of the output table that a stretch is asked about.
        asked: (C, T, R) float32, how often an input is asked about an output; need not be whole.
        yes: (C, T, Y) float32, how many of these questions have the answer yes, about the first Y
            outputs; about the others it is never yes.
    """

    rows: np.ndarray
    asked: np.ndarray
    yes: np.ndarray


@dataclass(frozen=True)
class Score:
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

    def __add__(self, other: Score) -> Score:
        return Score(
            self.loss + other.loss,
            self.right + other.right,
            self.questions + other.questions,
            self.pairs + other.pairs,
        )


def answered(
    inputs: np.ndarray, outputs: np.ndarray, questions: Questions, pairs: float
) -> tuple[Score, np.ndarray, np.ndarray]:
    """Loss of the questions and its gradients.

    Args:
        inputs: (C, T, D).
        outputs: (C, R, D), the vectors of ``questions.rows``.
        questions: The questions.
        pairs: Number of predicted words behind them.

    Returns:
        The score; the loss's gradients for inputs (C, T, D) and outputs (C, R, D).

    Reference:
        Mikolov et al. 2013, arXiv 1310.4546, equations 3 and 4: yes is log σ(u·v), no is
        log σ(-u·v).
    """
    # A copy, because products with a transposed view of a small matrix are slower.
    logits = inputs @ np.ascontiguousarray(outputs.swapaxes(1, 2))  # (C, T, R)
    asked, yes = questions.asked, questions.yes
    some = (..., slice(yes.shape[-1]))  # the outputs that have a yes
    half = np.tanh(0.5 * logits)
    gradient = asked * (0.5 * half + 0.5)  # (C, T, R); σ(x) = 1/2 + tanh(x/2)/2
    gradient[some] -= yes
    # -log σ(-x) = max(x, 0) + log 2 - log(1 + |tanh(x/2)|), which never overflows.
    positive = logits > 0
    number = float(asked.sum(dtype=np.float64))
    loss = math.log(2.0) * number - float(np.vdot(asked, np.log(1.0 + np.abs(half))))
    loss += float(np.vdot(asked, np.maximum(logits, 0.0)))
    loss -= float(np.vdot(yes, logits[some]))
    # A no is right below 0. What has the answer yes is right above 0 instead.
    right = number - float(np.vdot(asked, positive))
    right += 2.0 * float(np.vdot(yes, positive[some])) - float(yes.sum(dtype=np.float64))
    score = Score(loss, right, number, pairs)
    return score, gradient @ outputs, np.ascontiguousarray(gradient.swapaxes(1, 2)) @ inputs
