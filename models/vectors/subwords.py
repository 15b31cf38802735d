"""Character n-grams of words, and a table in which a word is the mean of its n-grams' vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from scipy.sparse import csr_array

from models.layers.scorer import ScorerLayer
from models.stage_format import SUBWORDS, head_file
from models.vectors.tables import Table, summed

ROWS = "rows"


def ngram_hash(ngram: str, value: int = 2_166_136_261) -> int:
    """FNV-1a of 32 bits over the UTF-8 bytes, each widened as a signed number.

    Bytes from 128 on thus set the upper 24 bits, too, so that other hashes than FNV-1a's come out
    for all but ASCII. Files of the original tool need it.

    Args:
        ngram: Characters.
        value: The hash of what comes before them; FNV's basis where nothing does.

    Reference:
        ``Dictionary::hash`` in fastText.
    """
    for byte in ngram.encode():
        signed = byte | 0xFFFFFF00 if byte > 127 else byte
        value = ((value ^ signed) * 16_777_619) & 0xFFFFFFFF
    return value


def ngram_hashes(word: str, shortest: int, longest: int) -> list[int]:
    """The hashes of the n-grams of ``<word>`` in characters, by place, then by length.

    Its first and last character alone are not among them.

    Args:
        word: A word.
        shortest: Characters of the shortest n-gram; 0 for no n-grams.
        longest: Characters of the longest one.

    Reference:
        Bojanowski et al. 2017, arXiv 1607.04606, 3.2; ``Dictionary::computeSubwords`` in fastText.
    """
    marked = f"<{word}>"
    last = len(marked) - 1
    found = []
    for start in range(len(marked) if shortest else 0):
        value = ngram_hash(marked[start])
        if shortest == 1 <= longest and 0 < start < last:
            found.append(value)
        for end in range(start + 1, min(start + longest, len(marked))):
            value = ngram_hash(marked[end], value)
            if end - start >= shortest - 1:
                found.append(value)
    return found


@dataclass(frozen=True)
class Subwords:
    """Which rows of a table a word is made of: V rows of words, then the buckets of n-grams.

    Attributes:
        vocabulary_size: V.
        shortest: Characters of the shortest n-gram.
        longest: Characters of the longest one.
        buckets: Rows that n-grams share by their hash.
    """

    vocabulary_size: int
    shortest: int
    longest: int
    buckets: int

    def of(self, word: str) -> list[int]:
        """The rows of a word's n-grams."""
        found = ngram_hashes(word, self.shortest, self.longest) if self.buckets else []
        return [self.vocabulary_size + value % self.buckets for value in found]

    def members(self, words: Sequence[str | None]) -> csr_array:
        """(V, V + buckets) float32, how often each row is in a word; its own row is there once.

        Args:
            words: (V,) the words; None for a special token, which has no n-grams.
        """
        rows = [[i, *(self.of(word) if word else ())] for i, word in enumerate(words)]
        ends = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter(chain.from_iterable(rows), np.int32, ends[-1])
        ones = np.ones(len(columns), np.float32)
        shape = (self.vocabulary_size, self.vocabulary_size + self.buckets)
        return csr_array((ones, columns, ends), shape=shape)

    def unseen(self, word: str, rows: Any) -> np.ndarray | None:
        """The vector of a word that has no row of its own, (D,); None if it has no n-grams.

        Args:
            word: A word, in the tokenizer's case.
            rows: (V + buckets, D), the trained rows; also part of a file.
        """
        found = self.of(word)
        return np.mean([rows[row : row + 1][0] for row in found], axis=0) if found else None


def subwords_of(config: Any, vocabulary_size: int) -> Subwords | None:
    """How words are made of n-grams, by a network's arguments; None if each has its own row."""
    if not hasattr(config, "buckets"):
        return None
    return Subwords(vocabulary_size, config.shortest_ngram, config.longest_ngram, config.buckets)


def rows_of(folder: Path) -> np.ndarray:
    """The trained rows of words and buckets in a stage's folder, (V + buckets, D)."""
    return load_file(head_file(folder, SUBWORDS))[ROWS]


@dataclass(frozen=True)
class SubwordTable(Table):
    """A table whose words are means of rows.

    As in fastText, each row of a word gets the whole gradient of the mean, without the division by
    their number.

    Attributes:
        array: (V + buckets, D) float32, changed in place.
        members: (V, V + buckets), as `Subwords.members`.
    """

    members: csr_array
    _sizes: np.ndarray = field(init=False)
    _place: np.ndarray = field(init=False)  # (V + buckets,), where a row is among those of a step

    def __post_init__(self) -> None:
        sizes = np.diff(self.members.indptr).astype(np.float32)
        object.__setattr__(self, "_sizes", sizes[:, None])
        object.__setattr__(self, "_place", np.empty(len(self.array), np.int32))

    def vectors(self, words: np.ndarray) -> np.ndarray:
        """The vectors of words, (…) → (…, D)."""
        found, place = np.unique(words, return_inverse=True)
        means = (self.members[found] @ self.array) / self._sizes[found]
        return np.take(means, place.reshape(words.shape), axis=0)

    def descend(
        self, words: np.ndarray, gradients: np.ndarray, questions: np.ndarray, rate: float
    ) -> None:
        """As `Table.descend`, for the rows of the words."""
        found, total, asked = summed(
            words.ravel(), gradients.reshape(-1, gradients.shape[-1]), questions.ravel()
        )
        chosen = self.members[found]
        ordered = np.sort(chosen.indices)
        rows = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        # `np.unique` with its inverse sorts places, several times more slowly.
        self._place[rows] = np.arange(len(rows))
        shape = (len(found), len(rows))
        into = csr_array((chosen.data, self._place[chosen.indices], chosen.indptr), shape=shape).T
        self.step(rows, into @ total, into @ asked, rate)


class SubwordRows(ScorerLayer):
    """The rows of words and buckets, kept beside the network for the next stage; scores nothing.

    Args:
        number: V + buckets.
        hidden_dim: D.
    """

    def __init__(self, number: int, hidden_dim: int):
        super().__init__(name=SUBWORDS, dtype="float32", autocast=False)
        self.shape = (number, hidden_dim)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variable."""
        self.rows: Any = self.add_weight(shape=self.shape, initializer="zeros", name=ROWS)
        self.built = True
