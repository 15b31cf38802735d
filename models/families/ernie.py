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

from dataclasses import dataclass

from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "added_vectors")
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


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_segments: Number of segment ids.
        num_tasks: Number of task ids; 0 for no table, as in ERNIE 1.0.
    """

    num_segments: int = 2
    num_tasks: int = 0


class Ernie(TextTransformer):
    """The encoder of Sun et al., 1.0 and 2.0.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), task_ids? (B,), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Sun et al. 2019, arXiv 1904.09223; Sun et al. 2020, arXiv 1907.12412, section 4.1.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True
