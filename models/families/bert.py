"""BERT: a Transformer encoder in which every token sees every other.

    token_ids, segment_ids, padding_mask
      → token + position + segment vectors → LayerNorm → dropout         (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)
      → first position → dense → tanh → pooled_output (B, D)

Parameters with the published vocabulary of 30,522 and the pooler: tiny 4,385,920, mini 11,170,560,
small 28,763,648, medium 41,373,184, base 109,482,240, large 335,141,888.
"""

from __future__ import annotations

from models.layers.encoder import TextEncoder
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "mini": {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024},
    "small": {"num_layers": 4, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "medium": {"num_layers": 8, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


class Bert(TextEncoder):
    """The encoder of Devlin et al. with its pooler; heads bring their own variables.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Transformer blocks.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        max_sequence_length: Longest text in tokens.
        num_segments: Number of segment ids.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: ``gelu_tanh`` (Google's code) or ``gelu`` (Hugging Face's ``gelu``).
        layer_norm_epsilon: Added to the variance in LayerNorms.
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax and the residual stream are float32 in both.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Devlin et al. 2019, arXiv 1810.04805; sizes below base: Turc et al. 2019, arXiv 1908.08962.
    """

    provides = frozenset(Capability(name) for name in PROVIDES)

    def __init__(
        self,
        *,
        vocabulary_size: int,
        num_layers: int,
        hidden_dim: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        activation: str = "gelu_tanh",
        layer_norm_epsilon: float = 1e-12,
        dtype: str = "float32",
        name: str = "bert",
    ):
        super().__init__(
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            dropout=dropout,
            activation=activation,
            layer_norm_epsilon=layer_norm_epsilon,
            pooled=True,
            own={"num_segments": num_segments},
            dtype=dtype,
            name=name,
        )
