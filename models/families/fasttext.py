"""fastText: word2vec whose words are made of character n-grams.

    token_ids → vectors → dropout → sequence_output (B, T, D); a row is the mean of its vectors

The network's table has the vectors of whole words, as a file of the original tool; that is what
heads read and tune. The rows of words and n-grams that they are means of stay beside it, for the
next stage and for words that are not in the vocabulary (`models.vectors.subwords`).

Parameters of the network: vocabulary × width; in pre-training, (vocabulary + buckets) × width.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.layers.word_vectors import WordVectors, WordVectorsConfig
from models.protocols import Capability

PROVIDES = ("static",)
SIZES = {
    "tiny": {"hidden_dim": 32, "dropout": 0.1, "buckets": 2000},
    "small": {"hidden_dim": 100, "buckets": 200_000},
    "base": {"hidden_dim": 300},
}


@dataclass(frozen=True, kw_only=True)
class _Config(WordVectorsConfig):
    """Arguments of word vectors, and fastText's.

    Attributes:
        shortest_ngram: Characters of the shortest n-gram; 0 for none.
        longest_ngram: Characters of the longest one.
        buckets: Rows that n-grams share by their hash.
    """

    shortest_ngram: int = 3
    longest_ngram: int = 6
    buckets: int = 2_000_000


class FastText(WordVectors):
    """The vectors of Bojanowski et al.

    Shape:
        {token_ids (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Bojanowski et al. 2017, arXiv 1607.04606, 3.2.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
