"""Which of several answers a language model finds best, from the log probabilities of its tokens.

The sum over an answer's tokens is no rule: of two answers the longer one is nearly always less
likely, whatever they say.

Reference:
    Brown et al. 2020, arXiv 2005.14165, 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PER_TOKEN, OVER_NEUTRAL, FREE_FORM = "per_token", "over_neutral", "free_form"
RULES = (PER_TOKEN, OVER_NEUTRAL, FREE_FORM)
ROUNDING = 1e-4  # nats by which scores that are equal may differ in float32
USUAL = {"label": PER_TOKEN, "choice": PER_TOKEN, "text": FREE_FORM}


def per_token(log_p: Sequence[np.ndarray]) -> np.ndarray:
    """(answers,) mean log probability of each answer's tokens, the rule of most tasks."""
    return np.array([tokens.mean() for tokens in log_p])


def over_neutral(log_p: Sequence[np.ndarray], neutral: Sequence[np.ndarray]) -> np.ndarray:
    """(answers,) log of P(answer | prompt) / P(answer | neutral prompt).

    An answer that is likely anywhere gains nothing by it. The paper's rule for ARC, OpenBookQA and
    RACE.

    Args:
        log_p: Of each answer's tokens after the prompt.
        neutral: The same after a prompt such as ``Answer:``.
    """
    pairs = zip(log_p, neutral, strict=True)
    return np.array([tokens.sum() - others.sum() for tokens, others in pairs])


def best(scores: np.ndarray) -> int:
    """The highest of (answers,) scores; of those that rounding alone tells apart, the first."""
    return int(np.flatnonzero(scores >= scores.max() - ROUNDING)[0])
