"""VisualBERT: one BERT that reads a text and the regions of a picture as one sequence.

    token_ids, segment_ids, padding_mask            region_features, region_mask
      → token + position + segment                    → W f + position 0 + last segment
      → LayerNorm                    (B, T, D)        → the same LayerNorm      (B, O, D)
                               └──────────┬───────────────────┘
      num_layers × [attention over both → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D)
      → first position → dense → tanh → pooled_output (B, D)

Regions have tables of positions and segments of their own, which are copies of the text's when the
first stage with pictures begins. A batch without regions is read as by BERT; so is a row whose
regions are all masked, in any batch.

Parameters with the published vocabulary of 30,522 and the pooler: base 111,450,624.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from models.keras_ops import ops
from models.layers.embedding import row_of
from models.layers.projection import projection
from models.layers.regions import Regions
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


class Visualbert(SingleStream):
    """The network of Li et al. with its pooler (`SingleStream`); heads bring their own variables.

    Reference:
        Li et al. 2019, arXiv 1908.03557, 3.
    """

    config_class = SingleStreamConfig
    provides = frozenset(Capability(name) for name in PROVIDES)

    def make_more(self, config: Any) -> None:
        """What turns regions into vectors, beside the text's LayerNorm."""
        self.region_embedding = projection(
            config.hidden_dim, name="region_embedding", dtype=self.dtype_policy.name
        )
        self.region_position, self.region_segment = (
            keras.layers.Embedding(
                table.input_dim, config.hidden_dim, name=f"region_{table.name}", dtype="float32"
            )
            for table in (self.embeddings.position, self.embeddings.segment)
        )

    @property
    def copies(self) -> tuple[tuple[Any, Any], ...]:
        """(table of the regions, the text's table whose numbers it starts with) each."""
        return (
            (self.region_position, self.embeddings.position),
            (self.region_segment, self.embeddings.segment),
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.region_embedding.build((None, None, self.region_dim))
        for table, _ in self.copies:
            table.build((None, None))
        self.begin_regions()

    def begin_regions(self) -> None:
        """Give the regions' tables the numbers of the text's, as they are now."""
        for table, original in self.copies:
            table.embeddings.assign(original.embeddings)

    def embed_regions(
        self, regions: Regions, features: Mapping[str, Any], training: bool | None
    ) -> Any:
        """The vectors of regions, (B, O, D) float32, by the text's LayerNorm."""
        x = ops.cast(self.region_embedding(regions[0]), "float32")
        x = x + row_of(self.region_position, 0) + row_of(self.region_segment, self.num_segments - 1)
        return self.embeddings.dropout(self.embeddings.norm(x), training=training)
