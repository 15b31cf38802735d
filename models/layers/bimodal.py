"""One block for text and regions: four paths of attention, each of which is on or off.

text → text, regions → regions       each stream attends to itself (LXMERT)
text → regions, regions → text       each stream attends to the other (ViLBERT)
all four                             one softmax over text and regions (VisualBERT, UNITER)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from models.keras_ops import ops
from models.layers.attention import NOT_SEEN
from models.layers.block import ResidualBlock
from models.layers.gather import gather_positions


class Path(StrEnum):
    """Who attends to whom."""

    TEXT_TO_TEXT = "text_to_text"
    TEXT_TO_REGIONS = "text_to_regions"
    REGIONS_TO_TEXT = "regions_to_text"
    REGIONS_TO_REGIONS = "regions_to_regions"


APART = (Path.TEXT_TO_TEXT, Path.REGIONS_TO_REGIONS)
ACROSS = (Path.TEXT_TO_REGIONS, Path.REGIONS_TO_TEXT)
TOGETHER = (*APART, *ACROSS)


class BimodalBlock(ResidualBlock):
    """Attention along the paths that are on, then a feed-forward network, for both streams.

    The block's own weights are those of the text. A part of a stream that has nothing to attend to
    is left out with its norm: x stays x. So without regions, or where all of a row's regions are
    masked, the text goes through a `TransformerBlock` with the same weights.

    Args:
        paths: The paths that are on in the attention that each stream has a set of weights for.
        regions: Arguments of `ResidualBlock` in which the stream of regions differs, such as its
            widths; {} for none. None: one set of weights serves both streams.
        cross_first: Whether before it each stream attends to the other one, both as they come in,
            with a norm and one set of weights for both directions (LXMERT).
        arguments: Those of `ResidualBlock`.

    Shape:
        x (B, T, D), regions (B, O, D′) or None, biases (B, 1, 1, T) and (B, 1, 1, O), which are
        needed where there are regions → (B, T, D) float32, (B, O, D′) float32 or None. With `at`
        (B, R), positions in [0, T): the text's output at these positions only, (B, R, D).

    Reference:
        Bugliarello et al. 2021, arXiv 2011.15124, 3: the gated bimodal layer.
    """

    def __init__(
        self,
        *,
        paths: Collection[Path],
        regions: Mapping[str, Any] | None = None,
        cross_first: bool = False,
        **arguments: Any,
    ):
        super().__init__(**arguments)
        self.paths = frozenset(paths)
        self.of_regions = None
        if regions is not None:
            self.of_regions = ResidualBlock(**{**arguments, **regions, "name": "regions"})
        self.cross_attention = self.cross_norm = None
        if cross_first:
            self.cross_attention = self.make_attention(name="cross_attention")
            self.cross_norm = self.make_norm("cross_norm")

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        if self.cross_attention is not None and self.cross_norm is not None:
            self.cross_attention.build()
            self.cross_norm.build((None, None, self.hidden_dim))
        super().build(input_shape)
        if self.of_regions is not None:
            self.of_regions.build()

    def call(
        self,
        x: Any,
        regions: Any = None,
        bias: Any = None,
        region_bias: Any = None,
        at: Any = None,
        training: bool | None = None,
    ) -> tuple[Any, Any]:
        """Run the block on both streams, or on the text alone."""
        if self.cross_attention is not None and regions is not None:
            x, regions = (
                self._crossed(x, regions, region_bias, training),
                self._crossed(regions, x, bias, training),
            )
        other = self if self.of_regions is None else self.of_regions
        text = self._offered(self, x, bias)
        picture = None if regions is None else self._offered(other, regions, region_bias)
        x = self._side(self, x, text, text, picture, at, training)
        if regions is not None:
            regions = self._side(other, regions, picture, text, picture, None, training)
        return x, regions

    def _offered(self, side: ResidualBlock, x: Any, bias: Any) -> tuple[Any, Any, Any, Any]:
        """What a stream asks with, and what is attended to in it: keys, values and their bias."""
        asking = side._before(x, side.attention_norm)
        return asking, *side.attention.keys_and_values(asking), bias

    def _side(
        self,
        side: ResidualBlock,
        x: Any,
        own: Any,
        text: Any,
        picture: Any,
        at: Any,
        training: bool | None,
    ) -> Any:
        """A stream after its attention and its feed-forward network."""
        asking = own[0]
        if own is text:
            wanted = ((Path.TEXT_TO_TEXT, text), (Path.TEXT_TO_REGIONS, picture))
        else:
            wanted = ((Path.REGIONS_TO_TEXT, text), (Path.REGIONS_TO_REGIONS, picture))
        seen = [offered for path, offered in wanted if path in self.paths and offered is not None]
        if at is not None:
            x, asking = gather_positions(x, at), gather_positions(asking, at)
        if seen:
            joined = zip(*(each[1:] for each in seen), strict=True)
            key, value, bias = (
                parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=axis)
                for parts, axis in zip(joined, (-1, -2, -1), strict=True)
            )
            attended = side.attention.attend(asking, key, value, bias=bias, training=training)
            after = side._attended(x, attended, side.attention_norm, training)
            alone = any(each is own for each in seen)
            x = after if alone else where_seen(bias, after, x)
        return side._feed_forward(x, training)

    def _crossed(self, x: Any, other: Any, bias: Any, training: bool | None) -> Any:
        """A stream after its attention to the other one."""
        assert self.cross_attention is not None
        asking, seen = (self._before(each, self.cross_norm) for each in (x, other))
        attended = self.cross_attention(asking, seen, bias=bias, training=training)
        return where_seen(bias, self._attended(x, attended, self.cross_norm, training), x)


def where_seen(bias: Any, after: Any, before: Any) -> Any:
    """`after` in the rows in which something is seen, `before` in those that see nothing."""
    seen = ops.any(bias > NOT_SEEN / 2, axis=-1)  # (B, 1, 1)
    return ops.where(seen, after, before)
