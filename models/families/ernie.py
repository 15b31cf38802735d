"""ERNIE of Baidu: BERT's encoder with ReLU (1.0) or with a table of tasks (2.0).

    token_ids, segment_ids, task_ids, padding_mask
      → token + position + segment (+ task) vectors → LayerNorm → dropout  (B, T, D)
      → num_layers × [attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)
      → first position → dense → tanh → pooled_output (B, D)

Parameters with the pooler: base (1.0) with its vocabulary of 18,000 99,865,344; base_2 with 30,522
109,484,544. Not the ERNIE of Tsinghua (arXiv 1905.07129), which adds vectors of entities.
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
        "num_tasks": 16,
    },
    "base": {
        "num_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "activation": "relu",
        "layer_norm_epsilon": 1e-05,
    },
    "base_2": {
        "num_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "num_tasks": 3,
    },
    "large_2": {
        "num_layers": 24,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
        "num_tasks": 3,
    },
}


class Ernie(TextEncoder):
    """The encoder of Sun et al., 1.0 and 2.0.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Transformer blocks.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        max_sequence_length: Longest text in tokens.
        num_segments: Number of segment ids.
        num_tasks: Number of task ids; 0 for no table, as in ERNIE 1.0.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: ``gelu``, ``gelu_tanh``, or ``relu`` as in ERNIE 1.0.
        layer_norm_epsilon: Added to the variance in LayerNorms.
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax and the residual stream are float32 in both.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), task_ids? (B,), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Sun et al. 2019, arXiv 1904.09223; Sun et al. 2020, arXiv 1907.12412, section 4.1.
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
        num_tasks: int = 0,
        dropout: float = 0.1,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        dtype: str = "float32",
        name: str = "ernie",
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
            num_tasks=num_tasks,
            pooled=True,
            own={"num_segments": num_segments, "num_tasks": num_tasks},
            dtype=dtype,
            name=name,
        )
