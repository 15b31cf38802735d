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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.layers.attention import bias_from_padding
from models.layers.bimodal import APART, BimodalBlock
from models.layers.block import ResidualBlock, TransformerBlock
from models.layers.norm import norm_layer
from models.layers.projection import projection
from models.layers.transformer import TextTransformer, TransformerConfig
from models.protocols import Capability

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

PROVIDES = ("bidirectional", "segments", "pooled_output", "regions")
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
BOX = 4  # numbers of a region's box


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


class Lxmert(TextTransformer):
    """The network of Tan and Bansal with its pooler; heads bring their own variables.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), region_features? (B, O, E),
        region_boxes? (B, O, 4), region_mask? (B, O)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32, and of a batch with
        regions region_output (B, O, D) float32}

    Raises:
        RecipeError: Regions have another number of features than `region_dim`.

    Reference:
        Tan and Bansal 2019, arXiv 1908.07490, 2.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    pooled = True

    def layer_order(self, config: Any) -> tuple[int, ...]:
        """The text's own blocks, then those of both."""
        return tuple(range(config.num_layers + config.num_cross_layers))

    def make_block(self, kind: type[ResidualBlock], config: Any, number: int) -> Any:
        """Block `number`: of the text alone, or of both."""
        if number < config.num_layers:
            return super().make_block(kind, config, number)
        return BimodalBlock(
            **self.block_arguments(config),
            paths=APART,
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
            hidden_dim=config.hidden_dim,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            dtype=self.dtype_policy.name,
        )

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        super().build(input_shape)
        self.region_encoder.build()

    def streams(
        self, features: Mapping[str, Any], training: bool | None = None, at: Any = None
    ) -> Iterator[tuple[Any, Any]]:
        """What enters the first block and what each gives, of the text and of the regions.

        Args:
            features: A batch.
            training: Whether there is dropout.
            at: (B, R), positions at which the last block gives the text; None for all.

        Yields:
            (B, T, D) and (B, O, D) float32; None for no regions. In the text's own blocks the
            regions are those that enter the first block of both.
        """
        x = self.embed(features, training=training)
        bias, regions, region_bias = self.attention_bias(features), None, None
        if keys.REGION_FEATURES in features:
            given = features[keys.REGION_FEATURES]
            mask = features.get(keys.REGION_MASK, ops.ones_like(given[:, :, 0]))
            region_bias = bias_from_padding(mask)
            regions = self.region_encoder(
                given, features[keys.REGION_BOXES], region_bias, training=training
            )
            if bias is None:
                bias = bias_from_padding(ops.ones_like(features[keys.TOKEN_IDS]))
        yield x, regions
        for number in self.order:
            here: dict[str, Any] = {"bias": bias, "training": training}
            here["at"] = at if number == self.order[-1] else None
            if number < self.num_layers:
                x = self.blocks[number](x, **here)
            else:
                x, regions = self.blocks[number](x, regions, region_bias=region_bias, **here)
            yield x, regions

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """What enters the first block of the text, and what each gives: (B, T, D) float32 each."""
        return [x for x, _ in self.streams(features, training)]

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        *_, (x, regions) = self.streams(features, training, features.get(keys.READ_POSITIONS))
        outputs = {keys.SEQUENCE_OUTPUT: x}
        if regions is not None:
            outputs[keys.REGION_OUTPUT] = regions
        assert self.pooler is not None
        outputs[keys.POOLED_OUTPUT] = ops.tanh(ops.cast(self.pooler(x[:, 0]), "float32"))
        return outputs


class _RegionEncoder(keras.layers.Layer):
    """Embeds the regions of a picture and lets them attend to each other.

    Args:
        blocks: What they go through.
        region_dim: E, numbers of a region.
        hidden_dim: D.
        dropout: Dropout rate of the vectors, 0-1.
        layer_norm_epsilon: Added to the variance.
        dtype: Dtype policy of the matrix products.

    Shape:
        features (B, O, E), boxes (B, O, 4), bias (B, 1, 1, O) → (B, O, D) float32.
    """

    def __init__(
        self,
        blocks: list[TransformerBlock],
        *,
        region_dim: int,
        hidden_dim: int,
        dropout: float,
        layer_norm_epsilon: float,
        dtype: str,
    ):
        super().__init__(name="region_encoder", dtype=dtype, autocast=False)
        self.widths = {"feature": region_dim, "box": BOX}
        self.hidden_dim = hidden_dim
        self.feature_embedding, self.box_embedding = (
            projection(hidden_dim, name=f"{name}_embedding", dtype=dtype) for name in self.widths
        )
        self.feature_norm, self.box_norm = (
            norm_layer(f"{name}_embedding_norm", layer_norm_epsilon) for name in self.widths
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")
        self.blocks = blocks

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        self.feature_embedding.build((None, None, self.widths["feature"]))
        self.feature_norm.build((None, None, self.hidden_dim))
        self.box_embedding.build((None, None, self.widths["box"]))
        self.box_norm.build((None, None, self.hidden_dim))
        for block in self.blocks:
            block.build((None, None, self.hidden_dim))
        self.built = True

    def call(self, features: Any, boxes: Any, bias: Any, training: bool | None = None) -> Any:
        """Embed, then run the blocks."""
        for name, given in (("feature", features), ("box", boxes)):
            if given.shape[-1] != self.widths[name]:
                raise RecipeError(
                    f"region_{'features' if name == 'feature' else 'boxes'}: {given.shape[-1]}"
                    f" numbers a region, but the network reads {self.widths[name]}; set"
                    " size.region_dim to the width of the features, boxes have four numbers"
                )
        seen = self.feature_norm(ops.cast(self.feature_embedding(features), "float32"))
        where = self.box_norm(ops.cast(self.box_embedding(boxes), "float32"))
        x = self.dropout((seen + where) / 2.0, training=training)  # (B, O, D)
        for block in self.blocks:
            x = block(x, bias=bias, training=training)
        return x
