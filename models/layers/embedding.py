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
        hidden_dim: Width.
        max_sequence_length: Rows of the position table: the longest text in tokens.
        num_segments: Rows of the segment table.
        dropout: Share dropped in training, 0-1.
        layer_norm_epsilon: Added to the variance.

    Shape:
        token_ids (B, T), segment_ids (B, T) or None for all 0 → (B, T, D) float32.

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
        self.segment = table(num_segments, "segment")
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, name="norm", dtype="float32"
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        for layer in (self.token, self.position, self.segment):
            layer.build((None, None))
        self.norm.build((None, None, self.hidden_dim))
        self.built = True

    def call(self, token_ids: Any, segment_ids: Any = None, training: bool | None = None) -> Any:
        """Look everything up."""
        length = token_ids.shape[1]
        if length is not None and length > self.max_sequence_length:
            raise RecipeError(
                f"sequence_length: {length} tokens, but the network's position table has "
                f"{self.max_sequence_length}; shorten the sequence or raise max_sequence_length"
            )
        x = self.token(token_ids)  # (B, T, D)
        positions: Any = ops.convert_to_tensor(self.position.embeddings)
        x = x + positions[None, : ops.shape(token_ids)[1]]
        # A product with a table of two rows, as in Google's code: its gradient is a product too,
        # where a lookup would add up B·T rows one by one.
        segments: Any = ops.convert_to_tensor(self.segment.embeddings)  # (segments, D)
        if segment_ids is None:
            x = x + segments[0]
        else:
            num_segments = segments.shape[0]
            x = x + ops.matmul(ops.one_hot(segment_ids, num_segments, dtype="float32"), segments)
        return self.dropout(self.norm(x), training=training)
