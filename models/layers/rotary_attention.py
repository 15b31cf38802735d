"""Attention by rotary positions: queries and keys are turned by an angle that their position sets.

    numbers 2i and 2i + 1 of a vector at position p  →  turned by p / 10000^(2i / K)

The product of a query and a key then depends on their distance, not on where they stand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models.keras_ops import ops
from models.layers.attention import MultiHeadAttention, size_of
from models.layers.sinusoids import cosines_and_sines
from models.layers.xla_elementwise import xla_elementwise


def _turn(x: Any, cosines: Any, sines: Any) -> Any:
    """Vectors (B, T, H, K), turned by angles (B or 1, T, 1, K)."""
    shape = ops.shape(x)
    pairs = ops.reshape(x, (*shape[:-1], shape[-1] // 2, 2))
    across = ops.stack([-pairs[..., 1], pairs[..., 0]], axis=-1)
    return x * cosines + ops.reshape(across, shape) * sines


_turned = xla_elementwise(_turn, trained=1)


class RotaryAttention(MultiHeadAttention):
    """Multi-head attention in which tokens are told apart by their distance.

    Args:
        max_sequence_length: P, positions that can be told apart.
        arguments: Those of `MultiHeadAttention`; the width per head must be even.

    Raises:
        RecipeError: It is odd.

    Shape:
        x (B, T, D), memory (B, S, D) or None for itself; `at` (B, T), the positions of `x` in the
        memory, None for 0, 1, 2… → (B, T, D).

    Reference:
        Su et al. 2021, arXiv 2104.09864, equations 14, 15 and 34.
    """

    def __init__(self, *, max_sequence_length: int, **arguments: Any):
        super().__init__(**arguments)
        if self.head_dim % 2:
            raise RecipeError(
                f"size: expected an even width per head for rotary positions, got {self.head_dim}"
                " (hidden_dim / num_heads)"
            )
        # Each twice, one for either number of a pair: (P, 1, K).
        angles = cosines_and_sines(max_sequence_length, self.head_dim)
        self._angles = [np.repeat(each, 2, axis=-1)[:, None] for each in angles]

    def call(
        self,
        x: Any,
        memory: Any = None,
        bias: Any = None,
        training: bool | None = None,
        at: Any = None,
    ) -> Any:
        """Attend from `x` to `memory`, or to itself."""
        key, value = self.keys_and_values(x if memory is None else memory, training)
        query = self._with_heads(self.query, x, at, training) * self.head_dim**-0.5
        scores = self._scores(ops.transpose(query, (0, 2, 1, 3)), key, None)
        return self._mix(scores, value, bias, None, training)

    def keys_and_values(self, memory: Any, training: bool | None = None) -> tuple[Any, Any]:
        """What of a memory (B, S, D) is attended to: (B, H, K, S) and (B, H, S, K)."""
        key = ops.transpose(self._with_heads(self.key, memory, None, training), (0, 2, 3, 1))
        rows = ops.reshape(memory, (-1, self.hidden_dim))
        return key, self._by_head(self.value(rows), size_of(memory))

    def _with_heads(self, layer: Any, x: Any, at: Any, training: bool | None) -> Any:
        """Queries or keys of (B, T, D) at some positions, turned: (B, T, H, K)."""
        rows = layer(ops.reshape(x, (-1, self.hidden_dim)))
        heads = ops.reshape(rows, (*size_of(x), self.num_heads, self.head_dim))
        cosines, sines = (ops.convert_to_tensor(each, heads.dtype) for each in self._angles)
        # Compiled for each shape, of which a served model meets new ones for ever.
        turned = _turned if training else _turn
        if at is None:
            length = ops.shape(x)[1]
            return turned(heads, cosines[None, :length], sines[None, :length])
        return turned(heads, ops.take(cosines, at, axis=0), ops.take(sines, at, axis=0))
