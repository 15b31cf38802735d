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

from dataclasses import dataclass

from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "added_vectors")
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "mini": {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024},
    "small": {"num_layers": 4, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "medium": {"num_layers": 8, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_segments: Number of segment ids.
        norm_first: Whether LayerNorms precede (pre-LN) instead of following (post-LN), with a last
            one behind the blocks (Xiong et al. 2020, arXiv 2002.04745). Hugging Face has no such
            BERT.
    """

    num_segments: int = 2
    norm_first: bool = False
    activation: str = "gelu_tanh"


class Bert(TextTransformer):
    """The encoder of Devlin et al. with its pooler; heads bring their own variables.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Reference:
        Devlin et al. 2019, arXiv 1810.04805; sizes below base: Turc et al. 2019, arXiv 1908.08962.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True
