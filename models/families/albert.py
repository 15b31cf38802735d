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

from dataclasses import dataclass
from typing import Any

from fourstage.errors import RecipeError
from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "added_vectors")
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


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        embedding_dim: Width of the embedding tables.
        num_groups: Groups of consecutive layers that share parameters; it need not divide the
            number of layers: layer i is of group ⌊i · num_groups / num_layers⌋.
        num_inner_blocks: Blocks a layer consists of, one after the other.
        num_segments: Number of segment ids.
    """

    embedding_dim: int = 128
    num_groups: int = 1
    num_inner_blocks: int = 1
    num_segments: int = 2
    activation: str = "gelu_tanh"


class Albert(TextTransformer):
    """The encoder of Lan et al.: factorised embeddings and parameters shared across layers.

    Gradients of a shared block add up over the layers that use it.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32}

    Raises:
        RecipeError: There are more groups than layers.

    Reference:
        Lan et al. 2020, arXiv 1909.11942, section 3.1 and table 1.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True
    always_project = True

    def layer_order(self, config: Any) -> tuple[int, ...]:
        """Layers of a group share its blocks."""
        if not 1 <= config.num_groups <= config.num_layers:
            raise RecipeError(
                f"size.num_groups: expected 1 to {config.num_layers}, no more than num_layers, got"
                f" {config.num_groups}"
            )
        return tuple(
            (layer * config.num_groups // config.num_layers) * config.num_inner_blocks + inner
            for layer in range(config.num_layers)
            for inner in range(config.num_inner_blocks)
        )
