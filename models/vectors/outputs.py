"""What is asked about a predicted word: whether it is there among noise words, or the way to it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fourstage.errors import ContractViolation
from models.vectors.huffman import paths
from models.vectors.logistic import OwnQuestions, Questions, SharedQuestions

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

    def own_questions(
        self, words: np.ndarray, there: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """The questions to T inputs that predict a word each.

        Args:
            words: (C, T) ids.
            there: (C, T) bool, whether there is an input.
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

    Raises:
        ContractViolation: There are no words.

    Reference:
        Mikolov et al. 2013, arXiv 1310.4546, 2.2; sharing: Ji et al. 2016, arXiv 1604.04661.
    """

    def __init__(self, frequencies: np.ndarray, noise_words: int, power: float):
        if not (frequencies > 0).any():
            raise ContractViolation(
                "noise words: no word of the text is in the tokenizer's vocabulary; learn the"
                " vocabulary from this text, or ask for a larger one"
            )
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
        predicted = np.ascontiguousarray(pairs.swapaxes(1, 2))  # (C, J, T)
        same = (noise[:, :, None] == words[:, None, :]).astype(np.float32)  # (C, K, J)
        counted = predicted.sum(axis=1, keepdims=True) - same @ predicted  # (C, K, T)
        counted *= np.float32(self.noise_words / NOISE_WORDS)
        rows = np.concatenate([words, noise], axis=1)
        return SharedQuestions(rows, np.concatenate([predicted, counted], axis=1), predicted)

    def own_questions(
        self, words: np.ndarray, there: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """As `Output.own_questions`."""
        return self.questions(
            words, np.eye(words.shape[1], dtype=np.float32) * there[..., None], rng
        )


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
        nodes, self._left, self._ends = paths(frequencies)
        # Numbers of 16 bits, which are enough for most vocabularies, are sorted much faster.
        self._nodes = nodes.astype(np.min_scalar_type(len(frequencies)))
        self._number = np.diff(self._ends, prepend=0)

    def _paths(self, words: np.ndarray) -> np.ndarray:
        """Places in the list of all paths, of the paths of words (n,), one after the other."""
        number = self._number[words]
        ends = np.cumsum(number)
        return np.repeat(self._ends[words] - ends, number) + np.arange(number.sum())

    def questions(
        self, words: np.ndarray, pairs: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """As `Output.questions`: the nodes on all paths of a stretch."""
        number = self._number[words]
        place = np.repeat(np.arange(words.size), number.ravel())
        stretch, place = np.divmod(place, words.shape[1])
        paths = self._paths(words.ravel())
        nodes, left = self._nodes[paths], self._left[paths]
        order = np.lexsort((nodes, stretch.astype(np.min_scalar_type(len(words)))))
        stretch, place, nodes, left = stretch[order], place[order], nodes[order], left[order]
        new = np.ones(len(nodes), bool)
        new[1:] = (nodes[1:] != nodes[:-1]) | (stretch[1:] != stretch[:-1])
        first = np.searchsorted(stretch, np.arange(len(words)))
        slot = np.cumsum(new) - 1
        slot -= slot[first][stretch]
        rows = np.zeros((len(words), int(slot.max()) + 1), np.int64)
        rows[stretch, slot] = nodes
        passed = np.zeros((*rows.shape, words.shape[1]), np.float32)  # (C, R, J)
        passed[stretch, slot, place] = 1.0
        turned = np.zeros_like(passed)
        turned[stretch, slot, place] = left
        predicted = np.ascontiguousarray(pairs.swapaxes(1, 2))  # (C, J, T)
        return SharedQuestions(rows, passed @ predicted, turned @ predicted)

    def own_questions(
        self, words: np.ndarray, there: np.ndarray, rng: np.random.Generator
    ) -> Questions:
        """As `Output.own_questions`: the nodes on each word's path."""
        paths = self._paths(words[there])
        number = np.where(there, self._number[words], 0)
        return OwnQuestions(self._nodes[paths], number, self._left[paths])
