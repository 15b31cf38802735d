"""A recurrent language model: cells one above the other read a text from left to right.

    token_ids, padding_mask
      → token vectors → dropout                                  (B, T, E)
      → num_layers × LSTM or GRU, forward, dropout between them
      → dropout → sequence_output                                (B, T, D)

Its layers have the names of `models.families.seq2seq`'s, which may start from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError, UnknownNameError
from models import features as keys
from models.keras_ops import ops
from models.layers.embedding import word_table
from models.layers.recurrent import FORWARD
from models.layers.recurrent_block import RecurrentBlock
from models.layers.summary import LAST
from models.protocols import Capability
from models.weights import named_weights

PROVIDES = ("causal",)
SIZES = {
    "tiny": {
        "num_layers": 1,
        "embedding_dim": 128,
        "hidden_dim": 128,
        "tied_output": True,
        "dropout": 0.1,
    },
    "dai": {"num_layers": 1, "embedding_dim": 512, "hidden_dim": 1024},
    "ramachandran": {
        "num_layers": 1,
        "embedding_dim": 1024,
        "hidden_dim": 1024,
        "dropout": 0.2,
    },
}
# By part: what the network that it starts from has to have in common; the value where that one
# has no such setting, None for a network that does not fit.
STARTS = {
    "encoder": {"cell": None, "embedding_dim": None, "hidden_dim": None, "direction": "forward"}
}

CELLS = ("lstm", "gru")


@dataclass(frozen=True, kw_only=True)
class _Config:
    """The arguments.

    Attributes:
        vocabulary_size: Number of token ids.
        num_layers: L.
        embedding_dim: E, width of a token's vector.
        hidden_dim: D, width of the cells' states, and of what predicts tokens.
        cell: ``lstm`` or ``gru``.
        tied_output: Whether the token table also predicts; else a matrix of its own.
        dropout: Share dropped of token vectors, between layers and of the outputs, 0-1.
    """

    vocabulary_size: int
    num_layers: int
    embedding_dim: int
    hidden_dim: int
    cell: str = "lstm"
    tied_output: bool = False
    dropout: float = 0.0


class Recurrent(keras.Model):
    """A recurrent language model, which also reads rows for a head.

    States begin anew in every row. A row's vector is the state after its last token.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}

    Raises:
        UnknownNameError: The cell is none of its values.
        RecipeError: The output is tied to a table of another width.

    Reference:
        Mikolov et al. 2010 (the language model); Dai and Le 2015, arXiv 1511.01432 (as the start of
        a classifier). Dropout: Zaremba et al. 2014, arXiv 1409.2329.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = LAST
    pooler_activation = None  # heads read the state after the last token as it is

    def __init__(self, *, dtype: str = "float32", name: str | None = None, **arguments: Any):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype, autocast=False)
        config = self.config_class(**arguments)
        if config.cell not in CELLS:
            raise UnknownNameError("size.cell", str(config.cell), "a cell", CELLS)
        if config.tied_output and config.embedding_dim != config.hidden_dim:
            raise RecipeError(
                "size.tied_output: expected an embedding_dim equal to hidden_dim, got"
                f" {config.embedding_dim} and {config.hidden_dim}; set tied_output: false"
            )
        self._arguments = asdict(config)
        self.hidden_dim = config.hidden_dim
        self.embeddings = word_table(config.vocabulary_size, config.embedding_dim, config.dropout)
        self.blocks = [
            RecurrentBlock(
                cell=config.cell,
                input_dim=config.hidden_dim if number else config.embedding_dim,
                hidden_dim=config.hidden_dim,
                direction=FORWARD,
                name=f"block_{number}",
            )
            for number in range(config.num_layers)
        ]
        self.dropout_layer = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self.output_table: Any = None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        config = self._arguments
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build()
        if not config["tied_output"]:
            initializer: Any = keras.initializers.TruncatedNormal(stddev=0.1)
            self.output_table = self.add_weight(
                shape=(config["vocabulary_size"], config["hidden_dim"]),
                initializer=initializer,
                name="output_table",
                autocast=False,
            )
        self.built = True

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The token table; heads that tie weights use its very variable."""
        return self.embeddings.token

    @property
    def starts(self) -> dict[str, dict[str, str]]:
        """By part: its weights' names, and theirs in the network that it starts from."""
        return {"encoder": {n: n for n in named_weights(self) if n != "output_table"}}

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Read; other keys of `features` are ignored."""
        ids = features[keys.TOKEN_IDS]
        mask = features.get(keys.PADDING_MASK, ops.ones_like(ids))
        x = self.embeddings(ids, training=training)
        for block in self.blocks:
            x, _ = block(x, mask=mask)
            x = self.dropout_layer(x, training=training)
        return {keys.SEQUENCE_OUTPUT: x}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}
