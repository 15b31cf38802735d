"""What a token is before the first block: its word, where it stands, which segment it is in."""

from __future__ import annotations

from typing import Any

import keras

from fourstage.errors import RecipeError

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class TextEmbedding(keras.layers.Layer):
    """Sum of token, learned position and segment vectors, normalised, with dropout.

    Args:
        vocabulary_size: Rows of the token table.
        hidden_dim: Width of the tables; that of the blocks where nothing is projected.
        max_sequence_length: Rows of the position table: the longest text in tokens.
        num_segments: Rows of the segment table; 0 for no table.
        num_tasks: Rows of the table of tasks (ERNIE 2.0); 0 for no table.
        dropout: Share dropped in training, 0-1.
        layer_norm_epsilon: Added to the variance.

    Shape:
        token_ids (B, T), segment_ids (B, T) or None for all 0, position_ids (B, T) or None for
        0, 1, 2…, task_ids (B,) or None for all 0 → (B, T, D) float32.

    Raises:
        RecipeError: If a text is longer than the position table.
    """

    def __init__(
        self,
        *,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int,
        num_segments: int,
        num_tasks: int = 0,
        dropout: float,
        layer_norm_epsilon: float,
        name: str = "embeddings",
    ):
        # Tables are looked up and summed in float32: rounding here saves nothing.
        super().__init__(name=name, dtype="float32", autocast=False)
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length

        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)

        def table(rows: int, name: str) -> keras.layers.Embedding:
            return keras.layers.Embedding(
                rows,
                hidden_dim,
                embeddings_initializer=initializer,
                name=name,
                dtype="float32",
            )

        self.token = table(vocabulary_size, "token")
        self.position = table(max_sequence_length, "position")
        self.segment = table(num_segments, "segment") if num_segments else None
        self.task = table(num_tasks, "task") if num_tasks else None
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, name="norm", dtype="float32"
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        for layer in (self.token, self.position, self.segment, self.task):
            if layer is not None:
                layer.build((None, None))
        self.norm.build((None, None, self.hidden_dim))
        self.built = True

    def call(
        self,
        token_ids: Any,
        segment_ids: Any = None,
        position_ids: Any = None,
        task_ids: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Look everything up."""
        length = token_ids.shape[1]
        if length is not None and length > self.max_sequence_length:
            raise RecipeError(
                f"sequence_length: {length} tokens, but the network's position table has "
                f"{self.max_sequence_length}; shorten the sequence or raise max_sequence_length"
            )
        x = self.token(token_ids)  # (B, T, D)
        positions: Any = ops.convert_to_tensor(self.position.embeddings)
        if position_ids is None:
            x = x + positions[None, : ops.shape(token_ids)[1]]
        else:
            x = x + ops.take(positions, position_ids, axis=0)
        if self.segment is not None:
            x = x + _of_few(self.segment, segment_ids)
        if self.task is not None:
            x = x + _of_few(self.task, None if task_ids is None else task_ids[:, None])
        return self.dropout(self.norm(x), training=training)


def _of_few(table: Any, ids: Any) -> Any:
    """Rows of a table of a few rows; the first one where no ids are given.

    A product, as in Google's code: its gradient is a product too, where a lookup would add up B·T
    rows one by one.
    """
    rows: Any = ops.convert_to_tensor(table.embeddings)
    if ids is None:
        return rows[0]
    return ops.matmul(ops.one_hot(ids, rows.shape[0], dtype="float32"), rows)
