"""The right one of each row's choices, predicted by a packaged model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

PAIRS = 64  # of a text with a choice, read at a time
_SHOWN = 20  # rows in a message


def choice_shares(logits: np.ndarray) -> np.ndarray:
    """(C,) probabilities of a row's choices, from their logits."""
    shares = np.exp(np.asarray(logits, np.float64) - np.max(logits))
    return shares / shares.sum()


def predict_choices(
    rows: Sequence[tuple[str, Sequence[str]]],
    score: Callable[[Sequence[str], Sequence[str]], np.ndarray],
) -> list[dict[str, Any]]:
    """The likeliest choice of each row; rows may have unlike numbers of choices.

    Args:
        rows: Texts with their choices.
        score: (P,) texts, (P,) choices → (P,) logits, each of one choice with its text.

    Returns:
        For each row ``answer``, the number of the choice from 0, as a text; ``text``: the choice
        itself; ``score``: its probability; ``probabilities``: {number: probability} of all.

    Raises:
        ValueError: Rows have fewer than two choices; with their numbers from 1.
    """
    wrong = [str(n) for n, (_, choices) in enumerate(rows, start=1) if len(choices) < 2]
    if wrong:
        more = ", …" if len(wrong) > _SHOWN else ""
        raise ValueError(
            f"expected two choices or more in each row, got fewer in {len(wrong)} of {len(rows)}:"
            f" {', '.join(wrong[:_SHOWN])}{more}"
        )
    pairs = [(text, choice) for text, choices in rows for choice in choices]
    parts = [pairs[start : start + PAIRS] for start in range(0, len(pairs), PAIRS)]
    logits = [score(*zip(*part, strict=True)) for part in parts]
    ends = np.cumsum([len(choices) for _, choices in rows])
    answers = []
    for (_, choices), own in zip(rows, np.split(np.concatenate(logits), ends[:-1]), strict=True):
        shares = choice_shares(own)
        best = int(shares.argmax())
        answers.append(
            {
                "answer": str(best),
                "text": choices[best],
                "score": float(shares[best]),
                "probabilities": {str(n): share for n, share in enumerate(shares.tolist())},
            }
        )
    return answers
