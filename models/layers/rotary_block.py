"""A Transformer block whose attention is by rotary positions."""

from __future__ import annotations

from typing import Any

from models.layers.block import TransformerBlock
from models.layers.gather import gather_positions
from models.layers.rotary_attention import RotaryAttention


class RotaryBlock(TransformerBlock):
    """A `TransformerBlock` with `RotaryAttention`.

    Args:
        max_sequence_length: Positions that attention can tell apart.
        arguments: Those of `TransformerBlock`.
    """

    def __init__(self, *, max_sequence_length: int, **arguments: Any):
        self._max_sequence_length = max_sequence_length
        super().__init__(**arguments)

    def attention_of(self, **arguments: Any) -> Any:
        """Attention by rotary positions."""
        return RotaryAttention(max_sequence_length=self._max_sequence_length, **arguments)

    def call(self, x: Any, bias: Any = None, at: Any = None, training: bool | None = None) -> Any:
        """Run the block, at all positions or only `at` some."""
        seen = asking = self._before(x, self.attention_norm)
        if at is not None:
            x, asking = gather_positions(x, at), gather_positions(seen, at)
        attended = self.attention(asking, seen, bias=bias, at=at, training=training)
        return self._after_attention(x, attended, training)
