"""context2vec: what stands around a place, by an LSTM from each side that has not read the place.

    token_ids, padding_mask
      → token vectors of the forward side  → num_layers × LSTM forward  → D of sequence_output
      → token vectors of the backward side → num_layers × LSTM backward → the other D

The two sides share nothing. The context of a place is the forward state before it and the backward
one after it, which the objective `context2vec` makes one vector of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from models import features as keys
from models.keras_ops import ops
from models.layers.embedding import word_table
from models.layers.recurrent import BACKWARD, FORWARD, LSTM
from models.layers.recurrent_block import RecurrentBlock
from models.layers.summary import MEAN
from models.protocols import Capability

PROVIDES = ("two_directions",)
SIZES = {
    "tiny": {"embedding_dim": 64, "state_dim": 64, "dropout": 0.1},
    "melamud": {"embedding_dim": 300, "state_dim": 600},
}


@dataclass(frozen=True, kw_only=True)
class _Config:
    """The arguments.

    Attributes:
        vocabulary_size: Number of token ids.
        embedding_dim: E, width of a token's vector on each side.
        state_dim: D, width of each side's states.
        num_layers: LSTMs of each side.
        dropout: Share dropped of token vectors, between layers and of the outputs, 0-1.
    """

    vocabulary_size: int
    embedding_dim: int
    state_dim: int
    num_layers: int = 1
    dropout: float = 0.0


class Context2Vec(keras.Model):
    """The two LSTMs of Melamud et al.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, 2D) float32}, the forward
        one first

    Reference:
        Melamud et al. 2016, https://aclanthology.org/K16-1006 (section 2.2).
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = MEAN
    pooler_activation = None  # heads read vectors as they are

    def __init__(self, *, dtype: str = "float32", name: str = "contexts", **arguments: Any):
        super().__init__(name=name, dtype=dtype, autocast=False)  # the scorer is `context2vec`
        config = self.config_class(**arguments)
        self._arguments = asdict(config)
        self.hidden_dim = 2 * config.state_dim
        self.embeddings, self.backward_embeddings = (
            word_table(config.vocabulary_size, config.embedding_dim, config.dropout, side)
            for side in ("embeddings", "backward_embeddings")
        )
        self.forward_blocks, self.backward_blocks = (
            [
                RecurrentBlock(
                    cell=LSTM,
                    input_dim=config.state_dim if number else config.embedding_dim,
                    hidden_dim=config.state_dim,
                    direction=direction,
                    name=f"block_{number}_{direction}",
                )
                for number in range(config.num_layers)
            ]
            for direction in (FORWARD, BACKWARD)
        )
        self.dropout_layer = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        self.embeddings.build((None, None))
        self.backward_embeddings.build((None, None))
        for block in (*self.forward_blocks, *self.backward_blocks):
            block.build()
        self.built = True

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The forward side's token table."""
        return self.embeddings.token

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Read; other keys of `features` are ignored."""
        ids = features[keys.TOKEN_IDS]
        mask = features.get(keys.PADDING_MASK, ops.ones_like(ids))
        sides = []
        for table, blocks in (
            (self.embeddings, self.forward_blocks),
            (self.backward_embeddings, self.backward_blocks),
        ):
            x = table(ids, training=training)
            for block in blocks:
                x, _ = block(x, mask=mask)
                x = self.dropout_layer(x, training=training)
            sides.append(x)
        return {keys.SEQUENCE_OUTPUT: ops.concatenate(sides, axis=-1)}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}
