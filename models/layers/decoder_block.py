"""The decoder's block in an encoder–decoder: it attends to the target so far and to the text."""

from __future__ import annotations

from typing import Any

from models.layers.attention import Past, as_past
from models.layers.block import ResidualBlock


class DecoderBlock(ResidualBlock):
    """Self-attention, attention to a memory, feed-forward network; each with its norm.

        post-LN (Transformer, BART)     x ← norm(x + f(x))
        pre-LN (T5)                     x ← x + f(norm(x))

    Args:
        arguments: Those of `ResidualBlock`.

    Shape:
        x (B, S, D), memory (B, T, D), bias broadcast to (B, H, S, S), memory_bias broadcast to
        (B, H, S, T) → (B, S, D) float32.

    Reference:
        Vaswani et al. 2017, arXiv 1706.03762, 3.1 and figure 1.
    """

    def __init__(self, **arguments: Any):
        super().__init__(**arguments)
        self.cross_attention = self.make_attention(name="cross_attention")
        self.cross_norm = self.make_norm("cross_norm")

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        self.cross_attention.build()
        self.cross_norm.build((None, None, self.hidden_dim))
        super().build(input_shape)

    def call(
        self,
        x: Any,
        memory: Any,
        bias: Any = None,
        memory_bias: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Run the block on a whole target."""
        seen = self._before(x, self.attention_norm)
        attended = self.attention(seen, bias=bias, training=training)
        x = self._attended(x, attended, self.attention_norm, training)
        asking = self._before(x, self.cross_norm)
        attended = self.cross_attention(asking, memory, bias=memory_bias, training=training)
        x = self._attended(x, attended, self.cross_norm, training)
        return self._feed_forward(x, training)

    def memorised(self, memory: Any) -> Past:
        """Keys and values of a memory (P, T, D); the same for all tokens of a target."""
        return as_past(*self.cross_attention.keys_and_values(memory))

    def go_on(
        self, x: Any, past: Past | None, memorised: Past, bias: Any = None, memory_bias: Any = None
    ) -> tuple[Any, Past]:
        """Run the block on tokens that continue a target.

        Args:
            x: The new tokens, (B, N, D).
            past: Keys and values at S places before them; None for none.
            memorised: What `memorised` gives for the memory.
            bias: Broadcast to (B, H, N, S + N).
            memory_bias: Broadcast to (B, H, N, T).

        Returns:
            Output at the new tokens, (B, N, D) float32, and their keys and values, (B, H, N, K).
        """
        seen = self._before(x, self.attention_norm)
        key, value = self.attention.keys_and_values(seen)
        attended = self.attention.attend(seen, key, value, bias=bias, past=past)
        x = self._attended(x, attended, self.attention_norm, None)
        asking = self._before(x, self.cross_norm)
        attended = self.cross_attention.attend(asking, bias=memory_bias, past=memorised)
        x = self._attended(x, attended, self.cross_norm, None)
        return self._feed_forward(x, None), as_past(key, value)
