"""UNITER: one BERT over text and regions, each of which has norms of its own before it joins.

    token_ids, segment_ids, padding_mask            region_features, region_boxes, region_mask
      → token + position + segment                    → LayerNorm(W f) + LayerNorm(W′ box)
      → LayerNorm                    (B, T, D)          + segment 1 → LayerNorm   (B, O, D)
                               └──────────┬───────────────────┘
      num_layers × [attention over both → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D)
      → first position → dense → tanh → pooled_output (B, D)

A box is seven numbers: left, top, right, bottom, width, height and area. To the features of a
region that an objective hides (`masked_regions`) a learned vector is added.

Parameters with the published vocabulary of 30,522 and the pooler: base 111,068,672,
large 337,256,448.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.embedding import row_of
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
    "large": {
        "num_layers": 24,
        "hidden_dim": 1024,
        "num_heads": 16,
        "intermediate_dim": 4096,
        "region_dim": 2048,
    },
}


class Uniter(SingleStream):
    """The network of Chen et al. with its pooler (`SingleStream`); heads bring their own variables.

    Reference:
        Chen et al. 2020, arXiv 1909.11740, 3.1, and the authors' code.
    """

    config_class = SingleStreamConfig
    provides = frozenset(Capability(name) for name in PROVIDES)

    def make_more(self, config: Any) -> None:
        """What turns regions into vectors."""
        self.region_embedding = RegionEmbedding(
            region_dim=config.region_dim,
            box_dim=7,
            hidden_dim=config.hidden_dim,
            apart=True,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            dtype=self.dtype_policy.name,
        )
        self.region_mask = keras.layers.Embedding(
            1, config.region_dim, name="region_mask", dtype="float32"
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.region_embedding.build()
        self.region_mask.build((None, None))

    def embed_regions(
        self, regions: Regions, features: Mapping[str, Any], training: bool | None
    ) -> Any:
        """The vectors of regions, (B, O, D) float32."""
        seen, boxes, _ = regions
        if keys.MASKED_REGIONS in features:
            hidden = ops.cast(features[keys.MASKED_REGIONS], "float32")[:, :, None]
            seen = seen + hidden * row_of(self.region_mask, 0)
        segment = row_of(self.embeddings.segment, 1)
        return self.region_embedding(seen, boxes, segment, training=training)
