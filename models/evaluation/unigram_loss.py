"""Unigram loss: the baseline that a network's masked-token loss has to beat."""

from __future__ import annotations

import numpy as np


def unigram_loss(seen: np.ndarray, guessed: np.ndarray) -> float | None:
    """Cross-entropy of a unigram model on held-out text, in nats per token.

    The model is the token frequencies of the training text with add-one smoothing (Jurafsky and
    Martin, Speech and Language Processing, 3rd edition draft, 3.6). It is the masked-token loss of
    a model that ignores the context.

    Args:
        seen: (V,) count of each token in the training text.
        guessed: (V,) count of each token in the held-out text.

    Returns:
        The loss; None if there is no training text or no held-out text.
    """
    if not seen.sum() or not guessed.sum():
        return None
    smoothed = seen + 1.0
    surprise = np.log(smoothed.sum()) - np.log(smoothed)
    return float(np.dot(guessed, surprise) / guessed.sum())
