"""One block for text and regions, whose streams attend to themselves or to each other.

text → text, regions → regions       each stream attends to itself (LXMERT, ViLBERT)
text → regions, regions → text       each stream attends to the other (ViLBERT)

One softmax over text and regions needs no such block: `models.layers.single_stream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.keras_ops import ops
from models.layers.attention import NOT_SEEN
from models.layers.block import ResidualBlock
from models.layers.gather import gather_positions


class BimodalBlock(ResidualBlock):
    """Attention, then a feed-forward network, for both streams.

    The block's own weights are those of the text. A part of a stream that has nothing to attend to
    is left out with its norm: x stays x. So without regions, or where all of a row's regions are
    masked, the text goes through a `TransformerBlock` with the same weights.

    Args:
        across: Whether each stream attends to the other one instead of to itself.
        regions: Arguments of `ResidualBlock` in which the stream of regions, which has weights of
            its own, differs, such as its widths; {} for none.
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
        across: bool = False,
        regions: Mapping[str, Any],
        cross_first: bool = False,
        **arguments: Any,
    ):
        super().__init__(**arguments)
        self.across = across
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
        text = self._offered(self, x, bias)
        if regions is None:
            return self._side(self, x, text, None, at, training), None
        picture = self._offered(self.of_regions, regions, region_bias)
        x = self._side(self, x, text, picture, at, training)
        return x, self._side(self.of_regions, regions, picture, text, None, training)

    def _offered(self, side: ResidualBlock, x: Any, bias: Any) -> tuple[Any, Any, Any, Any]:
        """What a stream asks with, and what is attended to in it: keys, values and their bias."""
        asking = side._before(x, side.attention_norm)
        return asking, *side.attention.keys_and_values(asking), bias

    def _side(
        self,
        side: ResidualBlock,
        x: Any,
        own: Any,
        other: Any,
        at: Any,
        training: bool | None,
    ) -> Any:
        """A stream after its attention, to itself or to what the other one offers, and the rest."""
        asking, seen = own[0], other if self.across else own
        if at is not None:
            x, asking = gather_positions(x, at), gather_positions(asking, at)
        if seen is not None:
            _, key, value, bias = seen
            attended = side.attention.attend(asking, key, value, bias=bias, training=training)
            after = side._attended(x, attended, side.attention_norm, training)
            x = where_seen(bias, after, x) if self.across else after
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
