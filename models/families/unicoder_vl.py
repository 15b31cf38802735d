"""Unicoder-VL: one BERT over text and regions; a region is its features and where it is.

    token_ids, segment_ids, padding_mask            region_features, region_boxes, region_mask
      → token + position + segment                    → W f + W′ box
      → LayerNorm                    (B, T, D)        → LayerNorm                 (B, O, D)
                               └──────────┬───────────────────┘
      num_layers × [attention over both → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D)
      → first position → dense → tanh → pooled_output (B, D)

A box is five numbers: left, top, right, bottom and area. Regions have no position, no segment.

Parameters with the published vocabulary of 30,522 and the pooler: base 111,062,016.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.layers.regions import RegionEmbedding, Regions
from models.layers.single_stream import SingleStream, SingleStreamConfig
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "regions", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "region_dim": 39,
    },
    "base": {
        "num_layers": 12,
        "hidden_dim": 768,
        "num_heads": 12,
        "intermediate_dim": 3072,
        "region_dim": 2048,
    },
}


class UnicoderVL(SingleStream):
    """The network of Li et al. with its pooler (`SingleStream`); heads bring their own variables.

    Reference:
        Li et al. 2020, arXiv 1908.06066, 3.1.
    """

    config_class = SingleStreamConfig
    provides = frozenset(Capability(name) for name in PROVIDES)

    def make_more(self, config: Any) -> None:
        """What turns regions into vectors."""
        self.region_embedding = RegionEmbedding(
            region_dim=config.region_dim,
            box_dim=5,
            hidden_dim=config.hidden_dim,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            dtype=self.dtype_policy.name,
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.region_embedding.build()

    def embed_regions(
        self, regions: Regions, features: Mapping[str, Any], training: bool | None
    ) -> Any:
        """The vectors of regions, (B, O, D) float32."""
        return self.region_embedding(*regions[:2], training=training)
