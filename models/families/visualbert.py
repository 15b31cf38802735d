"""VisualBERT: one BERT that reads a text and the regions of a picture as one sequence.

    token_ids, segment_ids, padding_mask            region_features, region_mask
      → token + position + segment                    → W f + position 0 + last segment
      → LayerNorm                    (B, T, D)        → the same LayerNorm      (B, O, D)
                               └──────────┬───────────────────┘
      num_layers × [attention over both → +, LayerNorm → feed-forward → +, LayerNorm]
      → sequence_output (B, T, D), region_output (B, O, D)
      → first position → dense → tanh → pooled_output (B, D)

Regions have tables of positions and segments of their own, which start as copies of the text's. A
batch without regions is read as by BERT; so is a row whose regions are all masked, in any batch.

Parameters with the published vocabulary of 30,522 and the pooler: base 111,450,624.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.layers.attention import bias_from_padding
from models.layers.projection import projection
from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

PROVIDES = ("bidirectional", "segments", "pooled_output", "regions")
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


@dataclass(frozen=True, kw_only=True)
class _Config(TransformerConfig):
    """What it has beside every encoder's arguments.

    Attributes:
        region_dim: E, numbers of a region.
        num_segments: Number of segment ids.
    """

    region_dim: int
    num_segments: int = 2


class Visualbert(TextTransformer):
    """The network of Li et al. with its pooler; heads bring their own variables.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), region_features? (B, O, E),
        region_mask? (B, O)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32, and of a batch with
        regions region_output (B, O, D) float32}

    Raises:
        RecipeError: Regions have another number of features than `region_dim`.

    Reference:
        Li et al. 2019, arXiv 1908.03557, 3.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True

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
        for table, original in self.copies:
            table.build((None, None))
            table.embeddings.assign(original.embeddings)

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block: the text, then the regions, (B, T + O, D) float32."""
        x = super().embed(features, training=training)
        given = features.get(keys.REGION_FEATURES)
        if given is None:
            return x
        if given.shape[-1] != self.region_dim:
            raise RecipeError(
                f"region_features: {given.shape[-1]} numbers a region, but the network reads"
                f" {self.region_dim}; set size.region_dim to the width of the features"
            )
        position, segment = (ops.convert_to_tensor(table.embeddings) for table, _ in self.copies)
        regions = ops.cast(self.region_embedding(given), "float32") + position[0] + segment[-1]
        regions = self.embeddings.dropout(self.embeddings.norm(regions), training=training)
        return ops.concatenate([x, regions], axis=1)

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """What hides padding of the text and of the regions, (B, 1, 1, T + O); None for none."""
        given = features.get(keys.REGION_FEATURES)
        if given is None:
            return super().attention_bias(features)
        text = features.get(keys.PADDING_MASK, ops.ones_like(features[keys.TOKEN_IDS]))
        regions = features.get(keys.REGION_MASK, ops.ones_like(given[:, :, 0]))
        both = [ops.cast(mask, "float32") for mask in (text, regions)]
        return bias_from_padding(ops.concatenate(both, axis=1))

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """What enters the first block of the text, and what each gives: (B, T, D) float32 each."""
        length = ops.shape(features[keys.TOKEN_IDS])[1]
        return [x[:, :length] for x in super().hidden_states(features, training)]

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        given, at = features.get(keys.REGION_FEATURES), features.get(keys.READ_POSITIONS)
        if given is None:
            return super().call(features, training)
        length = ops.shape(features[keys.TOKEN_IDS])[1]
        if at is not None:  # and at all regions, which follow the text
            places = length + ops.cumsum(ops.ones_like(given[:, :, 0], dtype=at.dtype), axis=1) - 1
            features = {**features, keys.READ_POSITIONS: ops.concatenate([at, places], axis=1)}
            length = ops.shape(at)[1]
        outputs = super().call(features, training)
        both = outputs[keys.SEQUENCE_OUTPUT]
        return {
            **outputs,
            keys.SEQUENCE_OUTPUT: both[:, :length],
            keys.REGION_OUTPUT: both[:, length:],
        }
