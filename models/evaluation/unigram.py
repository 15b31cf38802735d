"""The loss of frequencies alone: what a network must beat before its pre-training says anything."""

from __future__ import annotations

import numpy as np


def unigram_loss(seen: np.ndarray, guessed: np.ndarray) -> float | None:
    """Nats a token of guessing held-out tokens by how often each is in the training text.

    The cross-entropy of a unigram model with add-one smoothing (Jurafsky and Martin, Speech and
    Language Processing, 3rd edition draft, 3.6). A network's loss of guessing hidden tokens can be
    held against it: the network sees what stands around them.

    Args:
        seen: (V,) times each token is in the training text.
        guessed: (V,) times each is in the held-out text.

    Returns:
        None where there is no training or no held-out text.
    """
    if not seen.sum() or not guessed.sum():
        return None
    smoothed = seen + 1.0
    surprise = np.log(smoothed.sum()) - np.log(smoothed)
    return float(np.dot(guessed, surprise) / guessed.sum())
