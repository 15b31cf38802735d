"""Input embeddings: the sum of token, position, segment and task embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.sinusoids import Sinusoids


def word_table(
    vocabulary_size: int, embedding_dim: int, dropout: float, name: str = "embeddings"
) -> TextEmbedding:
    """Token vectors alone, as networks before the Transformer read them; arguments as below."""
    return TextEmbedding(
        vocabulary_size=vocabulary_size,
        hidden_dim=embedding_dim,
        max_sequence_length=None,
        num_segments=0,
        dropout=dropout,
        layer_norm_epsilon=None,
        stddev=0.1,
        name=name,
    )


class TextEmbedding(keras.layers.Layer):
    """Sum of token, position, segment and task embeddings, with a norm and dropout.

    Args:
        vocabulary_size: Rows of the token table.
        hidden_dim: Width of the tables; equal to that of the blocks unless they are projected.
        max_sequence_length: Rows of the position table: the longest sequence in tokens; None for no
            table.
        num_segments: Rows of the segment table; 0 for no table.
        num_tasks: Rows of the task table (ERNIE 2.0); 0 for no table.
        dropout: Dropout rate, 0-1.
        layer_norm_epsilon: Added to the variance; None for no LayerNorm (GPT).
        token: The token table of another embedding, to be shared; None for one of its own.
        stddev: Standard deviation of the initial tables, before truncation at two deviations.
        scale: Factor on token vectors.
        sinusoidal: Whether positions are sinusoids in place of a learned table.

    Shape:
        token_ids (B, T), segment_ids (B, T) or None for all 0, position_ids (B, T) or None for
        0, 1, 2…, task_ids (B,) or None for all 0 → (B, T, D) float32.

    Raises:
        RecipeError: A sequence is longer than the position table.
    """

    def __init__(
        self,
        *,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int | None,
        num_segments: int,
        num_tasks: int = 0,
        dropout: float,
        layer_norm_epsilon: float | None,
        token: keras.layers.Embedding | None = None,
        stddev: float = 0.02,
        scale: float = 1.0,
        sinusoidal: bool = False,
        name: str = "embeddings",
    ):
        # Look-ups and their sum are float32: bfloat16 would not be faster here.
        super().__init__(name=name, dtype="float32", autocast=False)
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.scale = scale

        def table(rows: int, name: str) -> keras.layers.Embedding:
            # One of its own: an initializer draws the same numbers each time it is called.
            initializer: Any = keras.initializers.TruncatedNormal(stddev=stddev)
            return keras.layers.Embedding(
                rows,
                hidden_dim,
                embeddings_initializer=initializer,
                name=name,
                dtype="float32",
            )

        self.token = table(vocabulary_size, "token") if token is None else token
        self.position: Any = None
        if max_sequence_length and sinusoidal:
            self.position = Sinusoids(max_sequence_length, hidden_dim)
        elif max_sequence_length:
            self.position = table(max_sequence_length, "position")
        self.segment = table(num_segments, "segment") if num_segments else None
        self.task = table(num_tasks, "task") if num_tasks else None
        self.norm = None
        if layer_norm_epsilon is not None:
            self.norm = keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, name="norm", dtype="float32"
            )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", dtype="float32")

    def build(self, input_shape: Any = None) -> None:
        """Create the variables, in the order in which they are listed."""
        for layer in (self.token, self.position, self.segment, self.task):
            if layer is not None and not layer.built:
                layer.build((None, None))
        if self.norm is not None:
            self.norm.build((None, None, self.hidden_dim))
        self.built = True

    def call(
        self,
        token_ids: Any,
        segment_ids: Any = None,
        position_ids: Any = None,
        task_ids: Any = None,
        more: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Embed a batch of tokens; `more`, (B or 1, T or 1, D), is added before the norm."""
        x = self.token(token_ids)  # (B, T, D)
        if self.scale != 1.0:
            x = x * self.scale
        if self.position is not None:
            x = x + self._positions(token_ids, position_ids)
        if self.segment is not None:
            x = x + _of_few(self.segment, segment_ids)
        if self.task is not None:
            x = x + _of_few(self.task, None if task_ids is None else task_ids[:, None])
        if more is not None:
            x = x + more
        if self.norm is not None:
            x = self.norm(x)
        return self.dropout(x, training=training)

    def _positions(self, token_ids: Any, position_ids: Any) -> Any:
        """The vectors of positions, (B or 1, T, D)."""
        length, longest = token_ids.shape[1], self.max_sequence_length
        if length is not None and longest is not None and length > longest:
            raise RecipeError(
                f"sequence_length: {length} tokens, but the network's position table has "
                f"{longest}; shorten the sequence or raise max_sequence_length"
            )
        positions: Any = ops.convert_to_tensor(self.position.embeddings)
        if position_ids is None:
            return positions[None, : ops.shape(token_ids)[1]]
        return ops.take(positions, position_ids, axis=0)


def with_added(x: Any, features: Mapping[str, Any]) -> Any:
    """What enters the first block (B, T, D), and what a head adds to it.

    Added vectors are in units of a token's own length: its root mean square.
    """
    added = features.get(keys.ADDED_VECTORS)
    if added is None:
        return x
    return x + added * ops.sqrt(ops.mean(ops.square(x), axis=-1, keepdims=True))


def positions_of_tokens(padding_mask: Any) -> Any:
    """Positions that count real tokens only, so that padding on the left changes nothing.

    Args:
        padding_mask: (B, T), or None for no padding.

    Returns:
        (B, T) int32, the number of real tokens before each one, 0 for padding; None for None.
    """
    if padding_mask is None:
        return None
    real = ops.cast(padding_mask, "int32")
    return ops.maximum(ops.cumsum(real, axis=1) - 1, 0) * real


def own_positions(positions: Any, new: Any) -> Any:
    """Those of the last `new` of (B, S + T) positions, (B, T); T is known where `new` is."""
    return ops.reshape(positions[:, ops.shape(positions)[1] - new :], (-1, new))


def row_of(table: Any, number: int) -> Any:
    """A row of a table, (D,) float32, whatever the compute dtype of the network is."""
    return table(ops.convert_to_tensor([number], dtype="int32"))[0]


def _of_few(table: Any, ids: Any) -> Any:
    """Look up rows of a small table; the first row if there are no ids.

    A product with one-hot vectors, as in Google's code. Its gradient is a product, too; that of a
    look-up would add B·T rows one by one.
    """
    rows: Any = ops.convert_to_tensor(table.embeddings)
    if ids is None:
        return rows[0]
    return ops.matmul(ops.one_hot(ids, rows.shape[0], dtype="float32"), rows)
