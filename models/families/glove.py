"""GloVe: one vector a word, from counts of which words stand near each other.

    token_ids → vectors → dropout → sequence_output (B, T, D); a row is the mean of its vectors

Parameters: vocabulary × width; the objective `glove` trains two such tables, whose sum this is.
"""

from __future__ import annotations

from models.layers.word_vectors import WordVectors, WordVectorsConfig
from models.protocols import Capability

PROVIDES = ("static",)
SIZES = {
    "tiny": {"hidden_dim": 32, "dropout": 0.1},
    "small": {"hidden_dim": 100},
    "base": {"hidden_dim": 300},
}


class Glove(WordVectors):
    """The vectors of Pennington et al.

    Shape:
        {token_ids (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Pennington et al. 2014, ACL D14-1162.
    """

    config_class = WordVectorsConfig
    provides = frozenset(Capability(name) for name in PROVIDES)
