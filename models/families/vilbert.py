"""ViLBERT: two streams of different widths, which attend to each other before each pair of blocks.

    token_ids, segment_ids, padding_mask            region_features, region_boxes, region_mask
      → token + position + segment → LayerNorm        → the whole picture, then its regions
      → blocks of the text alone     (B, T, D)        → LayerNorm(W f + W′ box)      (B, 1 + O, D′)
                               └──────────┬───────────────────┘
      num_region_layers × [each attends to the other → +, LayerNorm → feed-forward → +, LayerNorm
                           → each attends to itself → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D′)
      → relu(dense(first token)) · relu(dense(whole picture)) → pooled_output (B, D′)

A box is five numbers: left, top, right, bottom and area. Without regions, attention to them is left
out with the feed-forward network behind it, so that a text is read as by a BERT of num_layers; what
it is summed up by is the text's factor alone.

Parameters with the published vocabulary of 30,522 and both poolers: base 235,705,856.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.attention import bias_from_padding
from models.layers.attention_weights import attention_weights
from models.layers.bimodal import BimodalBlock, where_seen
from models.layers.block import ResidualBlock
from models.layers.projection import projection
from models.layers.regions import RegionEmbedding, Regions, with_whole
from models.layers.slices import part
from models.layers.transformer import TransformerConfig
from models.layers.two_streams import TwoStreams
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "regions", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "num_region_layers": 1,
        "region_hidden_dim": 96,
        "num_region_heads": 3,
        "region_intermediate_dim": 192,
        "region_dim": 39,
    },
    "base": {
        "num_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "num_region_layers": 6,
        "region_hidden_dim": 1024,
        "num_region_heads": 8,
        "region_intermediate_dim": 1024,
        "region_dim": 2048,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        num_region_layers: Blocks of the regions, each paired with one of the text's last blocks.
        region_hidden_dim: D′, width of a region's vector and of attention between the streams.
        num_region_heads: Attention heads of regions and between the streams; divides D′.
        region_intermediate_dim: Width inside the feed-forward network of regions.
        region_dim: E, numbers of a region.
        num_segments: Number of segment ids.
    """

    num_region_layers: int
    region_hidden_dim: int
    num_region_heads: int
    region_intermediate_dim: int
    region_dim: int
    num_segments: int = 2


class Vilbert(TwoStreams):
    """The network of Lu et al. with its poolers (`TwoStreams`); heads bring their own variables.

    Raises:
        RecipeError: There are more blocks of regions than of the text.

    Reference:
        Lu et al. 2019, arXiv 1908.02265, 2.1 and 3.2, and the authors' code: the pairs of layers.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)

    @property
    def num_alone(self) -> int:
        """Blocks of the text alone, before those of both."""
        return self.num_layers - self.num_region_layers

    @property
    def pooled_dim(self) -> int:
        """D′: the factors are as wide as regions."""
        return self.region_hidden_dim

    @property
    def region_output_dim(self) -> int:
        """D′."""
        return self.region_hidden_dim

    def make_block(self, kind: type[ResidualBlock], config: Any, number: int) -> Any:
        """Block `number`: of the text alone, or of each stream alone."""
        if number < self.num_alone:
            return super().make_block(kind, config, number)
        regions = _of_regions(config) | {"num_heads": config.num_region_heads}
        arguments = self.block_arguments(config)
        return BimodalBlock(**arguments, regions=regions, name=f"block_{number}")

    def make_more(self, config: Any) -> None:
        """What reads the regions, and what lets the streams attend to each other."""
        if not 1 <= config.num_region_layers <= config.num_layers:
            raise RecipeError(
                f"size.num_region_layers: expected 1 to {config.num_layers}, no more than"
                f" num_layers, got {config.num_region_layers}"
            )
        across = {
            "num_heads": config.num_region_heads,
            "head_dim": config.region_hidden_dim // config.num_region_heads,
        }
        self.cross_blocks = [
            BimodalBlock(
                **self.block_arguments(config) | across,
                across=True,
                regions=_of_regions(config),
                name=f"cross_{number}",
            )
            for number in range(config.num_region_layers)
        ]
        self.region_embedding = RegionEmbedding(
            region_dim=config.region_dim,
            box_dim=5,
            hidden_dim=config.region_hidden_dim,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            dtype=self.dtype_policy.name,
        )
        self.region_pooler = projection(
            config.region_hidden_dim, name="region_pooler", dtype=self.dtype_policy.name
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        for layer in (*self.cross_blocks, self.region_embedding):
            layer.build()
        self.region_pooler.build((None, self.region_hidden_dim))

    def regions(self, features: Mapping[str, Any]) -> Regions | None:
        """The whole picture, then its regions."""
        regions = super().regions(features)
        return None if regions is None else with_whole(regions)

    def read_regions(self, regions: Regions, bias: Any, training: bool | None) -> Any:
        """The vectors of the picture and its regions, (B, 1 + O, D′) float32."""
        return self.region_embedding(*regions[:2], training=training)

    def block_of_both(self, number: int, x: Any, regions: Any, **more: Any) -> tuple[Any, Any]:
        """Let the streams attend to each other, then block `number` on each alone."""
        if regions is not None:
            across = self.cross_blocks[number - self.num_alone]
            everywhere = {**more, "at": None}
            after, regions = across(x, regions, **everywhere)
            x = where_seen(more["region_bias"], after, x)
        return super().block_of_both(number, x, regions, **more)

    def pool(self, x: Any, regions: Any, features: Mapping[str, Any]) -> Any:
        """The product of both streams' first vectors, (B, D′) float32."""
        assert self.pooler is not None
        text = ops.relu(ops.cast(self.pooler(x[:, 0]), "float32"))
        given = self.regions(features)
        if given is None:
            return text
        picture = ops.relu(ops.cast(self.region_pooler(regions[:, 0]), "float32"))
        seen = given[2][:, :1]  # (B, 1), of the whole picture
        return ops.where(seen > 0, text * picture, text)

    def words_to_regions(self, features: Mapping[str, Any]) -> Any:
        """Attention of tokens to regions in the last pair, a mean over heads, (B, T, O)."""
        *_, (x, regions), _ = self.streams(features)
        across, given = self.cross_blocks[-1], self.regions(features)
        assert given is not None
        bias, seen = bias_from_padding(given[2]), across.of_regions.attention
        return attention_weights(across.attention, x, seen, regions, bias)[:, :, 1:]

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        outputs = super().call(features, training)
        if keys.REGION_OUTPUT in outputs:
            outputs[keys.REGION_OUTPUT] = part(outputs[keys.REGION_OUTPUT], 1)
        return outputs


def _of_regions(config: Any) -> dict[str, Any]:
    """The widths in which regions differ."""
    return {
        "hidden_dim": config.region_hidden_dim,
        "intermediate_dim": config.region_intermediate_dim,
    }
