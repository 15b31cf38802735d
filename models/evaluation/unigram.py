"""The loss of frequencies alone: what a network must beat before its pre-training says anything."""

from __future__ import annotations

import numpy as np

from models.protocols import TokenisedCorpus


def unigram_loss(
    train: TokenisedCorpus, heldout: TokenisedCorpus, vocabulary_size: int
) -> float | None:
    """Nats a token of guessing held-out tokens by how often each is in the training text.

    The cross-entropy of a unigram model with add-one smoothing (Jurafsky and Martin, Speech and
    Language Processing, eq. 3.24). The loss of a network that guesses hidden tokens can be held
    against it: the network sees what stands around them.

    Args:
        train: What is counted.
        heldout: What is guessed.
        vocabulary_size: Pieces that can occur.

    Returns:
        None where nothing is held out.
    """
    guessed = _counts(heldout, vocabulary_size)
    if not guessed.sum():
        return None
    seen = _counts(train, vocabulary_size) + 1
    return float(np.dot(guessed, np.log(seen.sum()) - np.log(seen)) / guessed.sum())


def _counts(corpus: TokenisedCorpus, vocabulary_size: int) -> np.ndarray:
    counts = np.zeros(vocabulary_size, np.int64)
    for i in range(len(corpus)):
        np.add.at(counts, corpus.document(i)[0], 1)
    return counts
