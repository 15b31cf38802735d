"""Text and the regions of a picture as one sequence, in which all see all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import bias_from_padding
from models.layers.attention_weights import attention_weights
from models.layers.regions import Regions, regions_of
from models.layers.slices import part
from models.layers.transformer import TextTransformer, TransformerConfig


@dataclass(frozen=True, kw_only=True)
class SingleStreamConfig(TransformerConfig):
    """What such a network has beside every encoder's arguments.

    Attributes:
        region_dim: E, numbers of a region.
        num_segments: Number of segment ids, from 2 where regions have segment 1 (UNITER).
    """

    region_dim: int
    num_segments: int = 2


class SingleStream(TextTransformer):
    """One row of blocks over a text and, after it, the regions; a family says its embedding.

    A batch without regions is read as by the text network; so is a row whose regions are all
    masked, in any batch.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), region_features? (B, O, E),
        region_boxes? (B, O, 4), region_mask? (B, O), masked_regions? (B, O)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32, and of a batch with
        regions region_output (B, O, D) float32}

    Raises:
        RecipeError: Regions have another number of features than `region_dim`.
    """

    pooled = True
    before_regions = 0  # vectors between the text's and the regions'

    @property
    def region_output_dim(self) -> int:
        """Width of ``region_output``."""
        return self.hidden_dim

    def regions(self, features: Mapping[str, Any]) -> Regions | None:
        """The regions that are read, which may be more than the batch has; None for none."""
        return regions_of(features, self.region_dim)

    def embed_regions(
        self, regions: Regions, features: Mapping[str, Any], training: bool | None
    ) -> Any:
        """The vectors of regions, (B, O, D) float32."""
        raise NotImplementedError

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block: the text, then the regions, (B, T + O, D) float32."""
        x, regions = super().embed(features, training=training), self.regions(features)
        if regions is None:
            return x
        return ops.concatenate([x, self.embed_regions(regions, features, training)], axis=1)

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """What hides padding of the text and of the regions, (B, 1, 1, T + O); None for none."""
        regions = self.regions(features)
        if regions is None:
            return super().attention_bias(features)
        text = features.get(keys.PADDING_MASK, ops.ones_like(features[keys.TOKEN_IDS]))
        return bias_from_padding(ops.concatenate([ops.cast(text, "float32"), regions[2]], axis=1))

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """What enters the first block of the text, and what each gives: (B, T, D) float32 each."""
        length = ops.shape(features[keys.TOKEN_IDS])[1]
        return [part(x, 0, length) for x in super().hidden_states(features, training)]

    def words_to_regions(self, features: Mapping[str, Any]) -> Any:
        """Attention of tokens to regions in the last block, a mean over heads, (B, T, O)."""
        x = super().hidden_states(features)[-2]
        attention = self.blocks[self.order[-1]].attention
        weights = attention_weights(attention, x, attention, x, self.attention_bias(features))
        length = features[keys.TOKEN_IDS].shape[1]
        first = length + self.before_regions
        return weights[:, :length, first : first + features[keys.REGION_MASK].shape[1]]

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        regions, at = self.regions(features), features.get(keys.READ_POSITIONS)
        if regions is None:
            return super().call(features, training)
        length = ops.shape(features[keys.TOKEN_IDS])[1]
        if at is not None:  # and at all regions, which follow the text
            ones = ops.ones_like(regions[2], dtype=at.dtype)
            places = length + ops.cumsum(ones, axis=1) - 1
            features = {**features, keys.READ_POSITIONS: ops.concatenate([at, places], axis=1)}
            length = ops.shape(at)[1]
        outputs = super().call(features, training)
        both = outputs[keys.SEQUENCE_OUTPUT]
        return {
            **outputs,
            keys.SEQUENCE_OUTPUT: part(both, 0, length),
            keys.REGION_OUTPUT: part(both, length),
        }
