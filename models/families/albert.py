"""ALBERT: narrow embedding tables, and one block that every layer shares.

    token_ids, segment_ids, padding_mask
      → token + position + segment vectors → LayerNorm → dropout           (B, T, E)
      → projection                                                         (B, T, D)
      → num_layers × the block of the layer's group
      → sequence_output (B, T, D)
      → first position → dense → tanh → pooled_output (B, D)

Parameters with the published vocabulary of 30,000 and the pooler, shared ones counted once: base
11,683,584, large 17,683,968, xlarge 58,724,864, xxlarge 222,595,584.
"""

from __future__ import annotations

from models.layers.encoder import TextEncoder
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "embedding_dim": 64,
    },
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
    "xlarge": {"num_layers": 24, "hidden_dim": 2048, "num_heads": 16, "intermediate_dim": 8192},
    "xxlarge": {"num_layers": 12, "hidden_dim": 4096, "num_heads": 64, "intermediate_dim": 16384},
}


class Albert(TextEncoder):
    """The encoder of Lan et al.: factorised embeddings and parameters shared across layers.

    Gradients of a shared block add up over the layers that use it.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Transformer blocks.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        embedding_dim: Width of the embedding tables.
        num_groups: Groups of consecutive layers that share parameters; divides nothing in
            particular, layer i is of group ⌊i · num_groups / num_layers⌋.
        num_inner_blocks: Blocks a layer consists of, one after the other.
        max_sequence_length: Longest text in tokens.
        num_segments: Number of segment ids.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: ``gelu_tanh`` or ``gelu``.
        layer_norm_epsilon: Added to the variance in LayerNorms.
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax and the residual stream are float32 in both.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Lan et al. 2020, arXiv 1909.11942, section 3.1 and table 1.
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
        embedding_dim: int = 128,
        num_groups: int = 1,
        num_inner_blocks: int = 1,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        activation: str = "gelu_tanh",
        layer_norm_epsilon: float = 1e-12,
        dtype: str = "float32",
        name: str = "albert",
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
            num_segments=num_segments,
            table_dim=embedding_dim,
            always_project=True,
            order=[
                (layer * num_groups // num_layers) * num_inner_blocks + inner
                for layer in range(num_layers)
                for inner in range(num_inner_blocks)
            ],
            pooled=True,
            own={
                "embedding_dim": embedding_dim,
                "num_groups": num_groups,
                "num_inner_blocks": num_inner_blocks,
                "num_segments": num_segments,
            },
            dtype=dtype,
            name=name,
        )
