"""DistilBERT: a BERT of half the layers, with no segments and no pooler.

    token_ids, padding_mask
      → token + position vectors → LayerNorm → dropout                     (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)

Parameters with the published vocabulary of 30,522: base 66,362,880.
"""

from __future__ import annotations

from models.layers.encoder import TextEncoder
from models.protocols import Capability

PROVIDES = ("bidirectional",)
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "base": {"num_layers": 6, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
}


class DistilBert(TextEncoder):
    """The student of Sanh et al.; the objective `distillation` trains it under a teacher.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Transformer blocks.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        max_sequence_length: Longest text in tokens.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: ``gelu_tanh`` or ``gelu``.
        layer_norm_epsilon: Added to the variance in LayerNorms.
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax and the residual stream are float32 in both.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Reference:
        Sanh et al. 2019, arXiv 1910.01108, section 3.
    """

    provides = frozenset(Capability(name) for name in PROVIDES)
    pooler_activation = "relu"  # of the dense layer that a classification head makes for itself
    pooler_dropout = False  # before that layer

    def __init__(
        self,
        *,
        vocabulary_size: int,
        num_layers: int,
        hidden_dim: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        dtype: str = "float32",
        name: str = "distilbert",
    ):
        super().__init__(
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            max_sequence_length=max_sequence_length,
            dropout=dropout,
            activation=activation,
            layer_norm_epsilon=layer_norm_epsilon,
            own={},
            dtype=dtype,
            name=name,
        )
