"""Text and the regions of a picture as two sequences that attend to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models import features as keys
from models.keras_ops import ops
from models.layers.attention import bias_from_padding
from models.layers.regions import Regions, regions_of
from models.layers.transformer import TextTransformer


class TwoStreams(TextTransformer):
    """Blocks of the text alone, then blocks of both; a family says these and its embedding.

    A batch without regions is read as by the text network; so is a row whose regions are all
    masked, in any batch.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), region_features? (B, O, E),
        region_boxes? (B, O, 4), region_mask? (B, O)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32, and of a batch with
        regions region_output (B, O, D′) float32}

    Raises:
        RecipeError: Regions have another number of features than `region_dim`.
    """

    pooled = True

    @property
    def num_alone(self) -> int:
        """Blocks of the text alone, before those of both."""
        return self.num_layers

    @property
    def region_output_dim(self) -> int:
        """D′, width of ``region_output``."""
        return self.hidden_dim

    def regions(self, features: Mapping[str, Any]) -> Regions | None:
        """The regions that are read, which may be more than the batch has; None for none."""
        return regions_of(features, self.region_dim)

    def read_regions(self, regions: Regions, bias: Any, training: bool | None) -> Any:
        """What the first block of both gets of the regions, (B, O, D′) float32."""
        raise NotImplementedError

    def block_of_both(self, number: int, x: Any, regions: Any, **more: Any) -> tuple[Any, Any]:
        """Block `number` on both streams; `regions` is None for none."""
        return self.blocks[number](x, regions, **more)

    def pool(self, x: Any, regions: Any, features: Mapping[str, Any]) -> Any:
        """One vector for each row, from the last block's, (B, pooled_dim) float32."""
        assert self.pooler is not None
        return ops.tanh(ops.cast(self.pooler(x[:, 0]), "float32"))

    def streams(
        self, features: Mapping[str, Any], training: bool | None = None, at: Any = None
    ) -> Iterator[tuple[Any, Any]]:
        """What enters the first block and what each gives, of the text and of the regions.

        Args:
            features: A batch.
            training: Whether there is dropout.
            at: (B, R), positions at which the last block gives the text; None for all.

        Yields:
            (B, T, D) and (B, O, D′) float32; None for no regions. In the text's own blocks the
            regions are those that enter the first block of both.
        """
        x = self.embed(features, training=training)
        bias, region_bias = self.attention_bias(features), None
        regions = self.regions(features)
        if regions is not None:
            region_bias = bias_from_padding(regions[2])
            regions = self.read_regions(regions, region_bias, training)
            if bias is None:
                bias = bias_from_padding(ops.ones_like(features[keys.TOKEN_IDS]))
        yield x, regions
        for number in self.order:
            here: dict[str, Any] = {"bias": bias, "training": training}
            here["at"] = at if number == self.order[-1] else None
            if number < self.num_alone:
                x = self.blocks[number](x, **here)
            else:
                x, regions = self.block_of_both(number, x, regions, region_bias=region_bias, **here)
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
        return {**outputs, keys.POOLED_OUTPUT: self.pool(x, regions, features)}
