"""DistilBERT: a BERT of half the layers, with no segments and no pooler.

    token_ids, padding_mask
      → token + position vectors → LayerNorm → dropout                     (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)

Parameters with the published vocabulary of 30,522: base 66,362,880.
"""

from __future__ import annotations

from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "added_vectors")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "base": {"num_layers": 6, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
}


class DistilBert(TextTransformer):
    """The student of Sanh et al.; the objective `distillation` trains it under a teacher.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Sanh et al. 2019, arXiv 1910.01108, section 3.
    """

    config_class = TransformerConfig
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooler_activation = "relu"  # of the dense layer that a classification head makes for itself
    pooler_dropout = False  # before that layer
