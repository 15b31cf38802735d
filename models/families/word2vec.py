"""word2vec: one vector a word, learned from the words around it.

    token_ids → vectors → dropout → sequence_output (B, T, D); a row is the mean of its vectors

Parameters: vocabulary × width, so 300 million with the published vocabulary of one million words at
``base``. The objectives `skip_gram` and `cbow` train the table before there are labels.
"""

from __future__ import annotations

from models.layers.word_vectors import WordVectors, WordVectorsConfig
from models.protocols import Capability

PROVIDES = ("static",)
# What the table of another network starts from: `starts_from: {embeddings: word2vec}`.
VECTORS_BY = {"skip_gram": {"window": 2, "subsampling": 1.0e-3, "learning_rate": 0.05}}
SIZES = {
    "tiny": {"hidden_dim": 32, "dropout": 0.1},
    "small": {"hidden_dim": 100},
    "base": {"hidden_dim": 300},
}


class Word2Vec(WordVectors):
    """The vectors of Mikolov et al.

    Shape:
        {token_ids (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Mikolov et al. 2013, arXiv 1301.3781 and 1310.4546.
    """

    config_class = WordVectorsConfig
    provides = frozenset(Capability(name) for name in PROVIDES)
