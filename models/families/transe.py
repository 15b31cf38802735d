"""TransE: one vector for each entity and each relation of a knowledge graph.

    token_ids → vectors → dropout → sequence_output (B, T, D); a row is the mean of its vectors

Parameters: (entities + relations) × width, as in table 1 of the paper. The objective `transe`
trains the table; heads read it as any table of vectors.
"""

from __future__ import annotations

from models.layers.word_vectors import WordVectors, WordVectorsConfig
from models.protocols import Capability

PROVIDES = ("static",)
SIZES = {
    "tiny": {"hidden_dim": 32, "dropout": 0.1},
    "wordnet": {"hidden_dim": 20},
    "freebase": {"hidden_dim": 50},
}


class TransE(WordVectors):
    """The vectors of Bordes et al.

    Shape:
        {token_ids (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Bordes et al. 2013, "Translating Embeddings for Modeling Multi-relational Data", NIPS.
    """

    config_class = WordVectorsConfig
    provides = frozenset(Capability(name) for name in PROVIDES)
