"""RoFormer: BERT's encoder in which attention tells tokens apart by their distance.

    token_ids, segment_ids, padding_mask
      → token + segment vectors → LayerNorm → dropout                     (B, T, D)
      → num_layers × [rotary attention → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D)

There is no table of positions and no pooler. Parameters of base with the published vocabulary of
50,000: 123,457,536.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.layers.rotary_block import RotaryBlock
from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "added_vectors")
EVEN_HEADS = True  # the numbers of a head are turned in pairs
SIZES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "mini": {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024},
    "small": {"num_layers": 4, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_segments: Number of segment ids.
    """

    num_segments: int = 2
    activation: str = "gelu_tanh"
    max_sequence_length: int = 1536


class Roformer(TextTransformer):
    """The encoder of Su et al.; as in Hugging Face's, values are not turned.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32}

    Reference:
        Su et al. 2021, arXiv 2104.09864.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    has_positions = False
    pooler_dropout = True  # before the dense layer that a classification head makes for itself

    @property
    def pooler_activation(self) -> str:
        """Of that dense layer: the blocks' activation."""
        return self.activation

    def make_block(self, kind: Any, config: Any, number: int) -> Any:
        """Block `number`."""
        return RotaryBlock(
            max_sequence_length=config.max_sequence_length,
            **self.block_arguments(config),
            name=f"block_{number}",
        )
