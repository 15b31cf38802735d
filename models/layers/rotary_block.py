"""A Transformer block whose attention is by rotary positions."""

from __future__ import annotations

from typing import Any

from models.layers.block import TransformerBlock
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

    def places(self, at: Any) -> dict[str, Any]:
        """The positions that are asked; None for all."""
        return {"at": at}
