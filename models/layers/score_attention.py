"""Attention from one state to a memory, by one of the scores that came before the Transformer's.

dot         hᵀ m               Luong et al. 2015
general     hᵀ W m             Luong et al. 2015
additive    vᵀ tanh(W h + U m)     Bahdanau et al. 2015; Luong's concat, whose one matrix is [W U]
"""

from __future__ import annotations

from typing import Any

import keras

from models.keras_ops import ops
from models.layers.attention import NOT_SEEN
from models.layers.projection import projection

DOT, GENERAL, ADDITIVE = "dot", "general", "additive"


class ScoreAttention(keras.layers.Layer):
    """The mean of a memory's vectors, weighted by the softmax of their scores.

    What the score needs of the memory, the keys, is computed once a text. Rows that follow one
    another may share a text, as the hypotheses of one text do.

    Args:
        score: ``dot``, for which state and memory are equally wide, ``general`` or ``additive``.
        hidden_dim: D, width of the state, and inside the additive score.
        memory_dim: M, width of the vectors that keys are made of.
        dtype: Policy of the matrix products; the additive score's sums and the softmax are float32.

    Shape:
        state (B, D), keys (P, T, D), memory (P, T, N), mask (P, T) or None, where P divides B →
        (B, N) float32.

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, 3.1 and A.1.2. Luong et al. 2015, arXiv 1508.04025,
        3.1. None of the products has a bias, as there.
    """

    def __init__(
        self, score: str, *, hidden_dim: int, memory_dim: int, dtype: str, name: str = "attention"
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.hidden_dim, self.memory_dim = hidden_dim, memory_dim
        own: dict[str, Any] = {"stddev": None, "use_bias": False, "dtype": dtype}
        self.query = projection(hidden_dim, name="query", **own) if score == ADDITIVE else None
        self.key = projection(hidden_dim, name="key", **own) if score != DOT else None
        self.vector: Any = None

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        if self.key is not None:
            self.key.build((None, None, self.memory_dim))
        if self.query is not None:
            self.query.build((None, self.hidden_dim))
            initializer: Any = keras.initializers.TruncatedNormal(stddev=self.hidden_dim**-0.5)
            self.vector = self.add_weight(
                shape=(self.hidden_dim,), initializer=initializer, name="vector", autocast=False
            )
        self.built = True

    def keys(self, memory: Any) -> Any:
        """What states are held against, (P, T, D) float32."""
        return memory if self.key is None else ops.cast(self.key(memory), "float32")

    def call(self, state: Any, keys: Any, memory: Any, mask: Any = None) -> Any:
        """Attend."""
        asked = state if self.query is None else ops.cast(self.query(state), "float32")
        asked = ops.reshape(asked, (ops.shape(keys)[0], -1, self.hidden_dim))  # (P, B/P, D)
        if self.vector is not None:
            inside = ops.tanh(asked[:, :, None] + keys[:, None])  # (P, B/P, T, D)
            scores = ops.sum(inside * self.vector, axis=-1)  # (P, B/P, T)
        else:
            found = self._product(keys, ops.transpose(asked, (0, 2, 1)))
            scores = ops.transpose(found, (0, 2, 1))
        if mask is not None:
            scores = scores + (1.0 - ops.cast(mask, "float32"))[:, None] * NOT_SEEN
        mean = self._product(ops.softmax(scores, axis=-1), memory)  # (P, B/P, N)
        return ops.reshape(mean, (-1, memory.shape[-1]))

    def _product(self, one: Any, other: Any) -> Any:
        """Of matrices, (P, …, …) float32."""
        found = ops.matmul(ops.cast(one, self.compute_dtype), ops.cast(other, self.compute_dtype))
        return ops.cast(found, "float32")
