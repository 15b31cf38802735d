"""A Transformer block whose attention is by relative positions and reaches back into a memory."""

from __future__ import annotations

from typing import Any

from models.keras_ops import ops
from models.layers.attention import Past, as_past
from models.layers.block import TransformerBlock
from models.layers.relative_attention import RelativeAttention


class RelativeBlock(TransformerBlock):
    """Attention by relative positions and a feed-forward network.

    Args:
        attention_dropout: Dropout rate of the attention weights, 0-1.
        own_biases: Whether its attention has biases u and v of its own.
        by_segment: Whether its attention tells segments apart.
        arguments: Those of `TransformerBlock`.

    Shape:
        x (B, T, D), memory (B, P, D) or None; bias broadcast to (B, H, T, P + T) → (B, T, D)
        float32.
    """

    def __init__(
        self, *, attention_dropout: float, own_biases: bool, by_segment: bool, **arguments: Any
    ):
        self._kind = {
            "dropout": attention_dropout,
            "own_biases": own_biases,
            "by_segment": by_segment,
        }
        super().__init__(**arguments)

    def attention_of(self, **arguments: Any) -> Any:
        """Attention by relative positions."""
        return RelativeAttention(**(arguments | self._kind))

    def call(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        x: Any,
        memory: Any = None,
        bias: Any = None,
        training: bool | None = None,
        **relations: Any,
    ) -> Any:
        """Run the block.

        Args:
            x: The row, (B, T, D).
            memory: What entered this block of the P tokens before, (B, P, D); None for none.
            bias: Added to the scores of attention.
            training: Whether there is dropout.
            relations: Further arguments of `RelativeAttention.attend`, such as ``table``.
        """
        asking, key, value = self.seen(x, memory)
        attended = self.attention.attend(
            asking, key, value, bias=bias, training=training, **relations
        )
        return self._after_attention(x, attended, training)

    def both_streams(
        self,
        x: Any,
        query: Any,
        memory: Any = None,
        content: dict[str, Any] | None = None,
        asked: dict[str, Any] | None = None,
        training: bool | None = None,
    ) -> tuple[Any, Any, Past]:
        """Run the block on the row, and on a second stream that asks the same keys and values.

        Args:
            x: The row, (B, T, D).
            query: The second stream, (B, M, D).
            memory: As for `call`.
            content: Arguments of `RelativeAttention.attend` for the row.
            asked: Those for the second stream, with ``at``.
            training: Whether there is dropout.

        Returns:
            Both streams after the block, (B, T, D) and (B, M, D), and the row's keys and values.
        """
        asking, key, value = self.seen(x, memory)
        attended = self.attention.attend(asking, key, value, training=training, **(content or {}))
        asking = self.attention_norm(query) if self.norm_first else query
        answered = self.attention.attend(asking, key, value, training=training, **(asked or {}))
        return (
            self._after_attention(x, attended, training),
            self._after_attention(query, answered, training),
            as_past(key, value),
        )

    def seen(self, x: Any, memory: Any = None) -> tuple[Any, Any, Any]:
        """What attention asks from, (B, T, D), and the keys and values of memory and row."""
        asking = self.attention_norm(x) if self.norm_first else x
        if memory is None:
            return asking, *self.attention.keys_and_values(asking)
        before = self.attention_norm(memory) if self.norm_first else memory
        return asking, *self.attention.keys_and_values(ops.concatenate([before, asking], axis=1))

    def go_on(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Any, past: Past | None, bias: Any = None, **relations: Any
    ) -> tuple[Any, Past]:
        """As `TransformerBlock.go_on`; `relations` as for `call`."""
        asking, key, value = self.seen(x)
        attended = self.attention.attend(asking, key, value, bias=bias, past=past, **relations)
        return self._after_attention(x, attended), as_past(key, value)
