"""LXMERT: a text and the regions of a picture, each read by itself, then with the other.

    token_ids, segment_ids, padding_mask            region_features, region_boxes, region_mask
      → token + position + segment → LayerNorm        → (LayerNorm(W f) + LayerNorm(W′ box)) / 2
      → num_layers × block           (B, T, D)        → num_region_layers × block     (B, O, D)
                               └──────────┬───────────────────┘
      num_cross_layers × [each attends to the other, with one set of weights → +, LayerNorm
                          → each attends to itself → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D)
      → first position → dense → tanh → pooled_output (B, D)

A batch without regions is read as by BERT with num_layers + num_cross_layers blocks: attention to
regions is left out, with its norm. So is a row whose regions are all masked, in any batch.

Parameters with the published vocabulary of 30,522 and the pooler: base 207,936,768.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models import features as keys
from models.layers.attention import bias_from_padding
from models.layers.attention_weights import attention_weights
from models.layers.bimodal import BimodalBlock
from models.layers.block import ResidualBlock, TransformerBlock
from models.layers.regions import RegionEmbedding, Regions
from models.layers.transformer import TransformerConfig
from models.layers.two_streams import TwoStreams
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "regions", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 1,
        "num_region_layers": 1,
        "num_cross_layers": 1,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "region_dim": 39,
    },
    "base": {
        "num_layers": 9,
        "num_region_layers": 5,
        "num_cross_layers": 5,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "region_dim": 2048,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_layers: Blocks of the text alone.
        num_region_layers: Blocks of the regions alone.
        num_cross_layers: Blocks of both.
        region_dim: E, numbers of a region.
        num_segments: Number of segment ids.
    """

    num_region_layers: int
    num_cross_layers: int
    region_dim: int
    num_segments: int = 2


class Lxmert(TwoStreams):
    """The network of Tan and Bansal with its pooler (`TwoStreams`); heads bring their variables.

    Reference:
        Tan and Bansal 2019, arXiv 1908.07490, 2.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)

    def layer_order(self, config: Any) -> tuple[int, ...]:
        """The text's own blocks, then those of both."""
        return tuple(range(config.num_layers + config.num_cross_layers))

    def make_block(self, kind: type[ResidualBlock], config: Any, number: int) -> Any:
        """Block `number`: of the text alone, or of both."""
        if number < config.num_layers:
            return super().make_block(kind, config, number)
        return BimodalBlock(
            **self.block_arguments(config),
            regions={},
            cross_first=True,
            name=f"block_{number}",
        )

    def make_more(self, config: Any) -> None:
        """What reads the regions alone."""
        blocks = [
            TransformerBlock(**self.block_arguments(config), name=f"block_{number}")
            for number in range(config.num_region_layers)
        ]
        self.region_encoder = _RegionEncoder(
            blocks,
            region_dim=config.region_dim,
            box_dim=4,
            apart=True,
            one_norm=False,
            hidden_dim=config.hidden_dim,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            dtype=self.dtype_policy.name,
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.region_encoder.build()

    def read_regions(self, regions: Regions, bias: Any, training: bool | None) -> Any:
        """The regions after their own blocks, (B, O, D) float32."""
        features, boxes, _ = regions
        return self.region_encoder(features, boxes, bias=bias, training=training)

    def words_to_regions(self, features: Mapping[str, Any]) -> Any:
        """Attention of tokens to regions in the last block, a mean over heads, (B, T, O)."""
        *_, (x, regions), _ = self.streams(features)
        attention = self.blocks[self.order[-1]].cross_attention
        bias = bias_from_padding(features[keys.REGION_MASK])
        return attention_weights(attention, x, attention, regions, bias)


class _RegionEncoder(RegionEmbedding):
    """Embeds the regions of a picture and lets them attend to each other.

    Args:
        blocks: What they go through.
        arguments: Those of `RegionEmbedding`.

    Shape:
        features (B, O, E), boxes (B, O, 4), bias (B, 1, 1, O) → (B, O, D) float32.
    """

    def __init__(self, blocks: list[TransformerBlock], **arguments: Any):
        super().__init__(name="region_encoder", **arguments)
        self.blocks = blocks

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        super().build(input_shape)
        for block in self.blocks:
            block.build((None, None, self.hidden_dim))

    def call(
        self,
        features: Any,
        boxes: Any,
        more: Any = None,
        training: bool | None = None,
        bias: Any = None,
    ) -> Any:
        """Embed, then run the blocks."""
        x = super().call(features, boxes, more, training)
        for block in self.blocks:
            x = block(x, bias=bias, training=training)
        return x
