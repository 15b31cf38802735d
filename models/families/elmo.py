"""ELMo: a language model in each direction, over words that are read as characters.

    token_ids, padding_mask → characters of each token's word, so far and from there on
      → character encoder, the same for both                                (B, T, D) each
      → num_layers × LSTM forward  → D of sequence_output (B, T, 2D)
      → num_layers × LSTM backward → the other D

Every layer but the first adds its input to its output. The two directions share the character
encoder and nothing else; there is no layer that reads both, because it would see what it predicts.

Parameters of `original`: 93,600,864, without the softmax of the objective and the spelling of the
vocabulary, which is no parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.character_encoder import CharacterEncoder
from models.layers.projected_lstm import ProjectedLstm
from models.layers.spelling import read_words, spelling
from models.layers.summary import MEAN
from models.protocols import Capability, Tokenizer

PROVIDES = ("two_directions",)
SIZES = {
    "tiny": {
        "filters": [[1, 32], [2, 32], [3, 64]],
        "max_characters": 24,
        "cell_dim": 512,
        "projection_dim": 128,
    },
    "original": {
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "cell_dim": 4096,
        "projection_dim": 512,
    },
}


@dataclass(frozen=True, kw_only=True)
class _Config:
    """The arguments.

    Attributes:
        vocabulary_size: Number of token ids.
        filters: [width, number] of each convolution over characters.
        cell_dim: Width of an LSTM's memory.
        projection_dim: D, width of a token's vector and of each direction's output.
        character_dim: Width of a character's vector.
        max_characters: Characters of a word, with the signs where it begins and ends.
        num_highways: Highway layers of the character encoder.
        num_layers: LSTMs in each direction.
        cell_clip: Largest absolute value of an LSTM's memory.
        projection_clip: Largest absolute value of its output.
        dropout: Share dropped of what each LSTM reads, and of the outputs, 0-1.
    """

    vocabulary_size: int
    filters: list[list[int]]
    cell_dim: int
    projection_dim: int
    character_dim: int = 16
    max_characters: int = 50
    num_highways: int = 2
    num_layers: int = 2
    cell_clip: float = 3.0
    projection_clip: float = 3.0
    dropout: float = 0.1


class Elmo(keras.Model):
    """The biLM of Peters et al. 2018.

    `spell` tells it the characters of its tokens, before the first training; they are saved with
    the weights. Any word has vectors, whether it is one token or several. States begin anew in
    every row.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, 2D) float32}, the forward
        one first

    Differs from the paper:
        It reads tokens, so that each one is predicted once. A word of several is read as its part
        until there, forwards, or from there, backwards (`models.layers.spelling`). No state is
        carried from batch to batch.

    Raises:
        RecipeError: Words are shorter than a convolution is wide.

    Reference:
        Peters et al. 2018, arXiv 1802.05365, 3; the authors' code, allenai/bilm-tf.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = MEAN
    pooler_activation = None  # heads read vectors as they are

    def __init__(self, *, dtype: str = "float32", name: str | None = None, **arguments: Any):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype, autocast=False)
        config = self.config_class(**arguments)
        widest = max(width for width, _ in config.filters)
        if config.max_characters < max(widest, 4):
            raise RecipeError(
                f"size.max_characters: expected at least {max(widest, 4)}, the widest convolution"
                f" and never less than 4, got {config.max_characters}"
            )
        self._arguments = asdict(config)
        self.hidden_dim = 2 * config.projection_dim
        self.num_hidden_states = config.num_layers + 1
        self.embeddings = CharacterEncoder(
            character_dim=config.character_dim,
            filters=config.filters,
            num_highways=config.num_highways,
            output_dim=config.projection_dim,
            dtype=dtype,
        )
        self.blocks = [
            _Directions(config, dtype=dtype, name=f"block_{number}")
            for number in range(config.num_layers)
        ]
        self.dropout_layer = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self.spelling: Any = None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        self.spelling = self.add_weight(
            shape=(self._arguments["vocabulary_size"], self._arguments["max_characters"] - 1),
            initializer="zeros",
            dtype="int32",
            trainable=False,
            name="spelling",
            autocast=False,
        )
        self.embeddings.build()
        for block in self.blocks:
            block.build()
        self.built = True

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The table of characters; there is none of tokens."""
        return self.embeddings.characters

    def spell(self, tokenizer: Tokenizer) -> None:
        """Learn the characters of the tokens."""
        self.spelling.assign(spelling(tokenizer, self.spelling.shape[1]))

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """Vectors of the tokens, as each direction reads them, (B, T, 2D) float32."""
        ids = ops.cast(features[keys.TOKEN_IDS], "int32")
        spelled = ops.take(ops.convert_to_tensor(self.spelling), ids, axis=0)
        words = ops.concatenate(read_words(spelled, features.get(keys.PADDING_MASK)), axis=0)
        return ops.concatenate(ops.split(self.embeddings(words), 2, axis=0), axis=-1)

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """The vectors of the tokens, and what each layer gives: (B, T, 2D) float32 each."""
        mask = features.get(keys.PADDING_MASK)
        states = [self.embed(features, training)]
        for number, block in enumerate(self.blocks):
            x = self.dropout_layer(states[-1], training=training)
            found = block(x, mask=mask)
            states.append(found + x if number else found)
        return states

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Read; other keys of `features` are ignored."""
        found = self.hidden_states(features, training)[-1]
        return {keys.SEQUENCE_OUTPUT: self.dropout_layer(found, training=training)}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}


class _Directions(keras.layers.Layer):
    """Two LSTMs, each of which reads its own half of what comes in.

    Shape:
        x (B, T, 2D), mask (B, T) or None → (B, T, 2D) float32.
    """

    def __init__(self, config: _Config, *, dtype: str, name: str):
        super().__init__(name=name, dtype=dtype, autocast=False)
        self.lstms = [
            ProjectedLstm(
                input_dim=config.projection_dim,
                cell_dim=config.cell_dim,
                output_dim=config.projection_dim,
                cell_clip=config.cell_clip,
                projection_clip=config.projection_clip,
                backwards=backwards,
                dtype=dtype,
                name="backward" if backwards else "forward",
            )
            for backwards in (False, True)
        ]

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        for lstm in self.lstms:
            lstm.build()
        self.built = True

    def call(self, x: Any, mask: Any = None) -> Any:
        """Read."""
        halves = ops.split(x, 2, axis=-1)
        found = [lstm(half, mask=mask) for lstm, half in zip(self.lstms, halves, strict=True)]
        return ops.concatenate(found, axis=-1)
