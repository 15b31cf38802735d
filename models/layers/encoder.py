"""What Transformers over one text share: embeddings, a row of blocks, perhaps a pooler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from models import features as keys
from models.layers.attention import bias_from_padding
from models.layers.block import TransformerBlock
from models.layers.embedding import TextEmbedding
from models.layers.gather import gather_positions
from models.layers.projection import projection
from models.layers.summary import FIRST

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops


class TextEncoder(keras.Model):
    """Embeddings → blocks → (pooler); a family says what of it it has.

    Variables are made in the constructor, so that their paths below the network are the same
    whatever wraps it later and on every backend. Every further setting of a family becomes an
    attribute and goes into `get_config`.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Blocks a token goes through.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        max_sequence_length: Longest text in tokens.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: Of the blocks and, unless the family says otherwise, of the heads.
        layer_norm_epsilon: Added to the variance in LayerNorms.
        dtype: Policy name of the matrix products.
        name: Of the model.
        num_segments: Rows of the segment table; 0 for none.
        num_tasks: Rows of the table of tasks; 0 for none.
        table_dim: Width of the embedding tables, projected where it is not `hidden_dim`.
        always_project: Whether there is a projection even where the widths are equal.
        order: Number of the block of each layer; 0, 1, 2… unless layers share blocks.
        pooled: Whether there is a pooler.
        own: Further arguments of the family, by name.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), task_ids? (B,)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32 where pooled};
        with read_positions (B, R), position 0 first: {sequence_output (B, R, D), …}
    """

    reads_positions = True
    row_summary = FIRST

    def __init__(
        self,
        *,
        vocabulary_size: int,
        num_layers: int,
        hidden_dim: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int,
        dropout: float,
        activation: str,
        layer_norm_epsilon: float,
        dtype: str,
        name: str,
        num_segments: int = 0,
        num_tasks: int = 0,
        table_dim: int | None = None,
        always_project: bool = False,
        order: Sequence[int] | None = None,
        pooled: bool = False,
        own: Mapping[str, Any] | None = None,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self._settings = {
            "vocabulary_size": vocabulary_size,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "num_heads": num_heads,
            "intermediate_dim": intermediate_dim,
            "max_sequence_length": max_sequence_length,
            "dropout": dropout,
            "activation": activation,
            "layer_norm_epsilon": layer_norm_epsilon,
            **(own or {}),
        }
        for argument, value in self._settings.items():
            setattr(self, argument, value)
        table_dim = table_dim or hidden_dim
        self.order = tuple(range(num_layers) if order is None else order)
        self.embeddings = TextEmbedding(
            vocabulary_size=vocabulary_size,
            hidden_dim=table_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
            num_tasks=num_tasks,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
        )
        self.embedding_projection = (
            projection(hidden_dim, name="embedding_projection", dtype=dtype)
            if always_project or table_dim != hidden_dim
            else None
        )
        self.blocks = [
            TransformerBlock(
                hidden_dim=hidden_dim,
                num_heads=num_heads,
                intermediate_dim=intermediate_dim,
                dropout=dropout,
                activation=activation,
                layer_norm_epsilon=layer_norm_epsilon,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(max(self.order) + 1)
        ]
        self.pooler = projection(hidden_dim, name="pooler", dtype=dtype) if pooled else None
        self._widths = (table_dim, hidden_dim)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        table_dim, hidden_dim = self._widths
        self.embeddings.build((None, None))
        if self.embedding_projection is not None:
            self.embedding_projection.build((None, None, table_dim))
        for block in self.blocks:
            block.build((None, None, hidden_dim))
        if self.pooler is not None:
            self.pooler.build((None, hidden_dim))
        self.built = True

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The token table; heads that tie weights use its very variable."""
        return self.embeddings.token

    def position_ids(self, features: Mapping[str, Any]) -> Any:
        """Which row of the position table each token gets, (B, T); None: as they stand."""
        return None

    def attention_bias(self, features: Mapping[str, Any]) -> Any:
        """What is added to the scores of attention, (B, 1, 1 or T, T); None for nothing.

        A family in which not every position sees every other makes its mask here, in the graph.
        """
        mask = features.get(keys.PADDING_MASK)
        return None if mask is None else bias_from_padding(mask)  # (B, 1, 1, T)

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block, (B, T, D) float32."""
        x = self.embeddings(
            features[keys.TOKEN_IDS],
            features.get(keys.SEGMENT_IDS),
            position_ids=self.position_ids(features),
            task_ids=features.get(keys.TASK_IDS),
            training=training,
        )
        if self.embedding_projection is not None:
            x = ops.cast(self.embedding_projection(x), "float32")
        return x

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        x = self.embed(features, training=training)
        bias = self.attention_bias(features)
        *before, last = self.order
        for number in before:
            x = self.blocks[number](x, bias=bias, training=training)
        at = features.get(keys.READ_POSITIONS)
        if at is not None and bias is not None and bias.shape[2] != 1:
            bias = gather_positions(bias[:, 0], at)[:, None]  # (B, 1, R, T)
        x = self.blocks[last](x, bias=bias, at=at, training=training)
        outputs = {keys.SEQUENCE_OUTPUT: x}
        if self.pooler is not None:
            pooled = ops.tanh(ops.cast(self.pooler(x[:, 0]), "float32"))  # (B, D)
            outputs[keys.POOLED_OUTPUT] = pooled
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._settings, "dtype": self.dtype_policy.name, "name": self.name}
