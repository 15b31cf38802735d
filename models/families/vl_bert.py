"""VL-BERT: one BERT in which every position, of text or regions, has a visual feature.

    token_ids, segment_ids, padding_mask            region_features, region_boxes, region_mask
      → token + position + segment 0, 1               → one vector for all + position + segment 2
      + γ(whole picture)                              + γ′(the region's own)
      → LayerNorm                    (B, T, D)        → LayerNorm                 (B, 1 + O + 1, D)
                               └──────────┬───────────────────┘
      num_layers × [attention over both → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D)
      → first position → dense → tanh → pooled_output (B, D)

A visual feature is relu(W [sines of the box; f]), and γ is a LayerNorm whose gains start at 0: what
is seen fades in. The regions come after the whole picture and before [END]; all have the position
after the text, [END] the next. Text without a picture has a learned visual feature.

Parameters with the published vocabulary of 30,522 and the pooler: base 112,637,696,
large 339,348,480.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np

from models import features as keys
from models.keras_ops import ops
from models.layers.embedding import row_of, with_added
from models.layers.norm import norm_layer
from models.layers.projection import ActivatedProjection
from models.layers.regions import Regions, with_whole
from models.layers.single_stream import SingleStream, SingleStreamConfig
from models.layers.slices import part
from models.protocols import Capability

PROVIDES = ("bidirectional", "segments", "pooled_output", "regions", "added_vectors")
SIZES = {
    "tiny": {
        "num_layers": 2,
        "hidden_dim": 128,
        "num_heads": 2,
        "intermediate_dim": 512,
        "region_dim": 39,
        "box_waves": 4,
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
# Rows of a table: of a region, of one that is hidden, of [END], of text without a picture.
REGION, HIDDEN, END, ALONE = range(4)


@dataclass(frozen=True, kw_only=True)
class _Config(SingleStreamConfig):
    """What it has beside such networks' arguments, or sets otherwise.

    Attributes:
        max_sequence_length: Longest text in tokens; there are two positions more.
        num_segments: Number of segment ids, of which regions have the last.
        box_waves: W, waves of each of a box's four numbers, which are 8·W numbers.
    """

    max_sequence_length: int = 510
    num_segments: int = 3
    box_waves: int = 256


class VLBert(SingleStream):
    """The network of Su et al. with its pooler (`SingleStream`); heads bring their own variables.

    Reference:
        Su et al. 2020, arXiv 1908.08530, 3.2, and the authors' code.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    before_regions = 1  # the whole picture

    def make_embeddings(self, config: Any, width: int, **more: Any) -> Any:
        """The text's, with a position more for regions and one for [END]."""
        longer = replace(config, max_sequence_length=config.max_sequence_length + 2)
        return super().make_embeddings(longer, width, **more)

    def make_more(self, config: Any) -> None:
        """What turns regions into vectors."""
        width, dtype = config.hidden_dim, self.dtype_policy.name
        self.region_embedding = ActivatedProjection(
            width, activation="relu", name="region_embedding", dtype=dtype
        )
        self.region_dropout = keras.layers.Dropout(
            config.dropout, name="region_dropout", dtype="float32"
        )
        self.region_vectors, self.region_mask = (
            keras.layers.Embedding(rows, dim, name=f"region_{name}", dtype="float32")
            for name, rows, dim in (("vectors", 4, width), ("mask", 1, config.region_dim))
        )
        self.region_text_norm, self.region_norm = (
            norm_layer(name, config.layer_norm_epsilon)
            for name in ("region_text_norm", "region_norm")
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.region_embedding.build((None, None, 8 * self.box_waves + self.region_dim))
        for table in (self.region_vectors, self.region_mask):
            table.build((None, None))
        for norm in (self.region_text_norm, self.region_norm):
            norm.build((None, None, self.hidden_dim))
            norm.gamma.assign(ops.zeros_like(norm.gamma))

    def regions(self, features: Mapping[str, Any]) -> Regions | None:
        """The whole picture, its regions, and a place for [END]."""
        given = super().regions(features)
        if given is None:
            return None
        seen, boxes, mask = with_whole(given)
        ends = (ops.zeros_like(seen[:, :1]), ops.zeros_like(boxes[:, :1]), mask[:, :1])
        parts = zip((seen, boxes, mask), ends, strict=True)
        first, second, third = (ops.concatenate(part, axis=1) for part in parts)
        return first, second, third

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block: text, picture, regions, [END], (B, T + 1 + O + 1, D)."""
        regions = self.regions(features)
        vectors = self.region_vectors(ops.arange(4, dtype="int32"))  # (4, D)
        hidden = self._hidden(features)
        seen = vectors[ALONE][None, None]  # (1, 1, D)
        visual = None
        if regions is not None:
            visual = self._visual(regions, hidden, training)
            seen = ops.where(regions[2][:, :1, None] > 0, visual[:, :1], seen)
        x = self.embeddings(
            features[keys.TOKEN_IDS],
            features.get(keys.SEGMENT_IDS),
            more=self.region_text_norm(seen),
            training=training,
        )
        x = with_added(x, features)
        if visual is None:
            return x
        rows = (
            self.region_norm(visual)
            + vectors[REGION]
            + hidden * (vectors[HIDDEN] - vectors[REGION])
        )
        end = ops.zeros_like(visual[:, :1]) + vectors[END]
        rows = ops.concatenate([part(rows, 0, ops.shape(rows)[1] - 1), end], axis=1)
        rows = rows + self._places(features, rows)
        rows = self.embeddings.dropout(self.embeddings.norm(rows), training=training)
        return ops.concatenate([x, rows], axis=1)

    def _hidden(self, features: Mapping[str, Any]) -> Any:
        """1 for what is hidden of the picture, its regions and [END], (B, 1 + O + 1, 1); or 0."""
        if keys.MASKED_REGIONS not in features:
            return 0.0
        hidden = ops.cast(features[keys.MASKED_REGIONS], "float32")
        return ops.pad(hidden, ((0, 0), (1, 1)))[:, :, None]

    def _visual(self, regions: Regions, hidden: Any, training: bool | None) -> Any:
        """The visual features of the picture, its regions and [END], (B, 1 + O + 1, D) float32."""
        seen, boxes, _ = regions
        seen = seen + hidden * row_of(self.region_mask, 0)
        both = ops.concatenate([box_waves(boxes, self.box_waves), seen], axis=-1)
        both = self.region_dropout(both, training=training)
        return ops.cast(self.region_embedding(both, training=training), "float32")

    def _places(self, features: Mapping[str, Any], rows: Any) -> Any:
        """Position and segment of the picture, its regions and [END], (B, 1 + O + 1, D)."""
        ids = features[keys.TOKEN_IDS]
        length = ops.sum(features.get(keys.PADDING_MASK, ops.ones_like(ids)), axis=1)
        here, after = (self.embeddings.position(length + more)[:, None] for more in (0, 1))
        here = ops.broadcast_to(here, ops.shape(rows[:, :-1]))
        segment = row_of(self.embeddings.segment, self.num_segments - 1)
        return ops.concatenate([here, after], axis=1) + segment

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        outputs = super().call(features, training)
        if keys.REGION_OUTPUT in outputs:
            both = outputs[keys.REGION_OUTPUT]
            outputs[keys.REGION_OUTPUT] = part(both, 1, ops.shape(both)[1] - 2)
        return outputs


def box_waves(boxes: Any, waves: int) -> Any:
    """Sines, then cosines, of a box's centre, width and height, in hundredths of the picture.

    Args:
        boxes: (…, 4), left, top, right, bottom as shares of the picture.
        waves: W, whose lengths grow from 2π to nearly 2000π.

    Returns:
        (…, 8·W).
    """
    left, top, right, bottom = (boxes[..., i] for i in range(4))
    numbers = ((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
    divisors = ops.convert_to_tensor(1000.0 ** (np.arange(waves) / waves), dtype="float32")
    angles = [100.0 * number[..., None] / divisors for number in numbers]  # (…, W) each
    parts = [curve(angle) for angle in angles for curve in (ops.sin, ops.cos)]
    return ops.concatenate(parts, axis=-1)
