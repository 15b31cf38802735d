"""A table of word vectors as a network: no token sees another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import keras

from models import features as keys
from models.layers.summary import MEAN
from models.protocols import Capability


@dataclass(frozen=True, kw_only=True)
class WordVectorsConfig:
    """Arguments of every network of word vectors.

    Attributes:
        hidden_dim: D, width of a vector.
        dropout: Dropout rate of the vectors while a head is trained, 0-1.
    """

    hidden_dim: int
    dropout: float = 0.0


class Rows(keras.layers.Embedding):
    """An embedding of whose table only the rows that are asked for are read.

    On TensorFlow, a variable with sparse updates is copied each time it is read as a whole.
    """

    def call(self, inputs: Any) -> Any:
        """Vectors of int32 ids, (…) → (…, D)."""
        if keras.backend.backend() != "tensorflow":
            return super().call(inputs)
        import tensorflow as tf

        table: Any = self.embeddings
        return tf.gather(table.value, inputs)


class WordVectors(keras.Model):
    """One vector for each word, whatever stands around it.

    Heads read a row as the mean of its vectors, without a layer of the network's own in between. A
    subclass is a family; its ``config_class`` has the arguments.

    Args:
        vocabulary_size: V, number of token ids.
        dtype: Policy name of the heads' matrix products; the table is float32.
        arguments: Those of ``config_class``.

    Shape:
        {token_ids (B, T)} → {sequence_output (B, T, D) float32}
    """

    config_class: type[WordVectorsConfig]
    provides: frozenset[Capability]
    row_summary: ClassVar[str] = MEAN
    pooler_activation: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        vocabulary_size: int,
        dtype: str = "float32",
        name: str = "word_vectors",
        **arguments: Any,
    ):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.config = self.config_class(**arguments)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = self.config.hidden_dim
        # word2vec.c, InitNet: uniform within ±1/2 divided by the width.
        bound = 0.5 / self.hidden_dim
        initializer: Any = keras.initializers.RandomUniform(-bound, bound)
        self.token_embedding = Rows(
            vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=initializer,
            name="token",
            dtype="float32",
        )
        self.dropout = keras.layers.Dropout(self.config.dropout, name="dropout", dtype="float32")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the table."""
        self.token_embedding.build((None, None))
        self.built = True

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Look the words up; other keys of `features` are ignored."""
        x = self.token_embedding(features[keys.TOKEN_IDS])  # (B, T, D)
        return {keys.SEQUENCE_OUTPUT: self.dropout(x, training=training)}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "dtype": self.dtype_policy.name,
            "name": self.name,
            **asdict(self.config),
        }
