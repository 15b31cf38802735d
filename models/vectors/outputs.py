"""What is asked about a predicted word: whether it is there among noise words, or the way to it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from models.vectors.huffman import paths
from models.vectors.logistic import Questions

NOISE_WORDS = 32  # K, noise words that a stretch shares


class Output(Protocol):
    """Makes the questions behind predicted words."""

    def questions(
        self, words: np.ndarray, pairs: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """The questions to T inputs that predict words.

        Args:
            words: (C, J) ids.
            pairs: (C, T, J) float32, how often an input predicts a word.
            rng: Draws noise.
        """
        ...


class NegativeSampling:
    """A word is told from k noise words, drawn by a power of how often they are there.

    A stretch of text shares K noise words: each of its inputs is asked about all of them, k / K
    times for each word it predicts. The expected loss and gradient are those of k noise words drawn
    for each pair, and the work is a matrix product. As in word2vec.c, a noise word that is the
    predicted word itself does not count.

    Args:
        frequencies: (V,) share of each word in the text; 0 is never drawn.
        noise_words: k, for each predicted word.
        power: Exponent of the frequency.

    Reference:
        Mikolov et al. 2013, arXiv 1310.4546, 2.2; sharing: Ji et al. 2016, arXiv 1604.04661.
    """

    def __init__(self, frequencies: np.ndarray, noise_words: int, power: float):
        self.noise_words = noise_words
        weights = np.where(frequencies > 0, frequencies, 0.0).astype(np.float64)
        weights[weights > 0] **= power
        self._cumulative = np.cumsum(weights / weights.sum())
        # Rounding may leave the last sum below 1, where a draw would find no word.
        self._last = int(np.flatnonzero(weights)[-1])

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Noise words, int64."""
        drawn = np.searchsorted(self._cumulative, rng.random(shape), side="right")
        return np.minimum(drawn, self._last)

    def questions(
        self, words: np.ndarray, pairs: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """As `Output.questions`: the words themselves, then the noise words."""
        noise = self.draw((len(words), NOISE_WORDS), rng)  # (C, K)
        same = (words[:, :, None] == noise[:, None, :]).astype(np.float32)  # (C, J, K)
        counted = pairs.sum(axis=2, keepdims=True) - pairs @ same  # (C, T, K)
        counted *= np.float32(self.noise_words / NOISE_WORDS)
        rows = np.concatenate([words, noise], axis=1)
        return Questions(rows, np.concatenate([pairs, counted], axis=2), pairs)


class HierarchicalSoftmax:
    """A word is the leaf of a binary tree; at each node on the way to it, is the way left?

    The tree is Huffman's, so that frequent words have short paths. Row n of the output table
    belongs to node n.

    Args:
        frequencies: (V,) share of each word, from which the tree is made.

    Reference:
        Morin and Bengio 2005; Mikolov et al. 2013, arXiv 1310.4546, 2.1.
    """

    def __init__(self, frequencies: np.ndarray):
        self._nodes, self._left = paths(frequencies)

    def questions(
        self, words: np.ndarray, pairs: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """As `Output.questions`: the nodes on all paths of a stretch."""
        nodes = self._nodes[words]  # (C, J, longest path), -1 after its end
        stretch, place, step = np.nonzero(nodes >= 0)
        count = len(self._nodes)
        found, slot = np.unique(stretch * count + nodes[stretch, place, step], return_inverse=True)
        of, node = np.divmod(found, count)
        first = np.searchsorted(of, np.arange(len(words)))
        slot = slot - first[stretch]
        most = int(np.bincount(of).max())
        rows = np.zeros((len(words), most), np.int64)
        rows[of, np.arange(len(of)) - first[of]] = node
        passed = np.zeros((*words.shape, most), np.float32)  # (C, J, R)
        passed[stretch, place, slot] = 1.0
        left = np.zeros_like(passed)
        left[stretch, place, slot] = self._left[words][stretch, place, step]
        return Questions(rows, pairs @ passed, pairs @ left)
