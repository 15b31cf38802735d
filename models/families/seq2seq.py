"""Recurrent encoder–decoders: one network of cells reads a text, another one writes the target.

    token_ids, padding_mask                          target_ids, target_mask
      → token vectors → dropout                        → the same, with the same table
      → num_layers × LSTM or GRU, forward,             → num_layers × LSTM or GRU, begun with the
        backward or in both directions  (B, T, M)        encoder's last states, with attention to
                               └─────────────────────────┘ the text → sequence_output (B, S, D)

Four systems are settings of it: Sutskever's has no attention, Bahdanau's attends with the state
before, Luong's with the new one, and may feed its output back (`models.layers.recurrent_decoder`);
Ramachandran's starts from two language models, one for each side.

Parameters of sutskever's cells, without their biases: 64,000,000, as the paper says; the whole
network has its 384 million only with its two vocabularies.
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
from models.layers.encoder_decoder import target_of
from models.layers.recurrent import BOTH
from models.layers.recurrent_block import RecurrentBlock
from models.layers.recurrent_decoder import BAHDANAU, NONE, Memory, RecurrentDecoder
from models.layers.summary import LAST
from models.protocols import Capability
from models.weights import named_weights

PROVIDES = ("encoder_decoder", "generation", "two_language_models")
SIZES = {
    "tiny": {
        "num_layers": 1,
        "embedding_dim": 128,
        "hidden_dim": 128,
        "input_feeding": True,
        "target_table": True,
        "residual": True,
        "tied_output": True,
        "dropout": 0.1,
    },
    "sutskever": {
        "num_layers": 4,
        "embedding_dim": 1000,
        "hidden_dim": 1000,
        "direction": "backward",
        "attention": "none",
    },
    "rnnsearch": {
        "num_layers": 1,
        "embedding_dim": 620,
        "hidden_dim": 1000,
        "cell": "gru",
        "direction": "both",
        "attention": "bahdanau",
    },
    "luong": {
        "num_layers": 4,
        "embedding_dim": 1000,
        "hidden_dim": 1000,
        "direction": "backward",
        "input_feeding": True,
        "dropout": 0.2,
    },
    "dai": {"num_layers": 1, "embedding_dim": 512, "hidden_dim": 1024, "attention": "none"},
    "ramachandran": {
        "num_layers": 3,
        "embedding_dim": 1024,
        "hidden_dim": 1024,
        "target_table": True,
        "multi_layer_attention": True,
        "residual": True,
        "dropout": 0.2,
    },
}
# By part: what the network that it starts from has to have in common; the value where that one
# has no such setting, None for a network that does not fit.
STARTS = {
    "encoder": {
        "cell": None,
        "embedding_dim": None,
        "hidden_dim": None,
        "tied_output": None,
        "direction": "forward",
    },
    "decoder": {
        "cell": None,
        "embedding_dim": None,
        "hidden_dim": None,
        "tied_output": None,
        "target_table": True,
    },
}

CELLS = ("lstm", "gru")
DIRECTIONS = ("forward", "backward", "both")
ATTENTIONS = ("bahdanau", "luong_dot", "luong_general", "luong_concat", "none")


@dataclass(frozen=True, kw_only=True)
class _Config:
    """The arguments.

    Attributes:
        vocabulary_size: Number of token ids.
        num_layers: L, layers of the encoder, and of the decoder.
        embedding_dim: E, width of a token's vector.
        hidden_dim: D, width of the cells' states, and of what predicts tokens.
        cell: ``lstm`` or ``gru``.
        direction: In which the encoder reads: ``forward``, ``backward`` (the source reversed, as
            Sutskever and Luong have it) or ``both``.
        attention: How the decoder attends to the text: ``bahdanau``, ``luong_dot``,
            ``luong_general``, ``luong_concat`` or ``none``.
        input_feeding: Whether the decoder reads its output before; with Luong's attention only.
        multi_layer_attention: Whether the decoder attends to the encoder's first layer beside its
            top one, with the weights of the top one.
        residual: Whether the state of the decoder's first layer is added to its output.
        target_table: Whether targets have a token table of their own.
        tied_output: Whether the token table, the target's, also predicts; else a matrix of its own.
        dropout: Share dropped of token vectors, between layers and of the outputs, 0-1.
        max_sequence_length: Longest text, and longest target, that it may be asked to read.
    """

    vocabulary_size: int
    num_layers: int
    embedding_dim: int
    hidden_dim: int
    cell: str = "lstm"
    direction: str = "forward"
    attention: str = "luong_general"
    input_feeding: bool = False
    multi_layer_attention: bool = False
    residual: bool = False
    target_table: bool = False
    tied_output: bool = False
    dropout: float = 0.0
    max_sequence_length: int = 512

    def check(self) -> None:
        """Refuse settings that do not go together, and names that are none."""
        for name, known in (
            ("cell", CELLS),
            ("direction", DIRECTIONS),
            ("attention", ATTENTIONS),
        ):
            if getattr(self, name) not in known:
                raise UnknownNameError(f"size.{name}", str(getattr(self, name)), f"a {name}", known)
        if self.input_feeding and self.attention in (BAHDANAU, NONE):
            raise RecipeError(
                "size.input_feeding: expected false where attention is"
                f" {self.attention}, got true; it feeds the output of Luong's attention back"
            )
        if self.multi_layer_attention and (self.attention == NONE or self.num_layers < 2):
            raise RecipeError(
                "size.multi_layer_attention: expected false where there is no attention, or one"
                f" layer; got true with attention {self.attention} and {self.num_layers} layers"
            )
        if self.attention == "luong_dot" and self.direction == BOTH:
            raise RecipeError(
                "size.attention: luong_dot needs states as wide as the text's vectors, which have"
                " twice the width where direction is both; take luong_general"
            )
        if self.tied_output and self.embedding_dim != self.hidden_dim:
            raise RecipeError(
                "size.tied_output: expected an embedding_dim equal to hidden_dim, got"
                f" {self.embedding_dim} and {self.hidden_dim}; set tied_output: false"
            )


class Seq2Seq(keras.Model):
    """The encoder–decoders of Sutskever et al., Bahdanau et al., Luong et al., Ramachandran et al.

    A decoder's layer begins with the last state of the encoder's layer of the same number; behind
    an encoder of both directions, as in Bahdanau, with tanh(W s) of the backward one's. A batch
    without a target is read by both, as `models.layers.encoder_decoder` has it.

    Shape:
        {token_ids (B, T), padding_mask? (B, T), target_ids (B, S), target_mask? (B, S),
        attended_mask? (B, T)} →
        {sequence_output (B, S, D) float32}; without target_ids {sequence_output (B, T, D) float32}

    Differs from the papers:
        Source and target share one vocabulary, and one table unless `target_table`. Weights begin
        as Keras's cells' do, other matrices with variance 1 / inputs. Cells have no peepholes.
        Bahdanau's maxout gives D values, the paper's D / 2, and reads the state after the token, as
        its equation 4 says and its appendix A.2.2 does not. Luong's attention is the global one.
        Ramachandran's first layers are as wide as the others, without the projection of their
        language models.

    Raises:
        UnknownNameError: A cell, direction or attention is none of its values.
        RecipeError: Settings do not go together.

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215. Bahdanau et al. 2015, arXiv 1409.0473. Luong et al.
        2015, arXiv 1508.04025. Ramachandran et al. 2017, arXiv 1611.02683.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = LAST
    target_begin = ("sep",)
    pooler_activation = None  # the papers classify nothing: heads have no dense layer of their own

    def __init__(self, *, dtype: str = "float32", name: str | None = None, **arguments: Any):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype, autocast=False)
        config = self.config_class(**arguments)
        config.check()
        self._arguments = asdict(config)
        for argument, value in self._arguments.items():
            setattr(self, argument, value)
        layer_dim = config.hidden_dim * (2 if config.direction == BOTH else 1)
        num_memories = 2 if config.multi_layer_attention else 1
        self.memory_dim = num_memories * layer_dim
        words = config.vocabulary_size, config.embedding_dim, config.dropout
        self.embeddings = self.target_embeddings = word_table(*words)
        if config.target_table:
            self.target_embeddings = word_table(*words, name="target_embeddings")
        self.blocks = [
            RecurrentBlock(
                cell=config.cell,
                input_dim=layer_dim if number else config.embedding_dim,
                hidden_dim=config.hidden_dim,
                direction=config.direction,
                name=f"block_{number}",
            )
            for number in range(config.num_layers)
        ]
        self.decoder = RecurrentDecoder(
            cell=config.cell,
            num_layers=config.num_layers,
            first=config.num_layers,
            embedding_dim=config.embedding_dim,
            hidden_dim=config.hidden_dim,
            memory_dim=layer_dim,
            num_memories=num_memories,
            attention=config.attention,
            input_feeding=config.input_feeding,
            residual=config.residual,
            own_start=config.direction == BOTH,
            dropout=config.dropout,
            dtype=dtype,
        )
        self.dropout_layer = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self._own_output: Any = None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        config = self._arguments
        self.embeddings.build((None, None))
        if config["target_table"]:
            self.target_embeddings.build((None, None))
        for block in self.blocks:
            block.build()
        self.decoder.build()
        if not config["tied_output"]:
            initializer: Any = keras.initializers.TruncatedNormal(stddev=0.1)
            self._own_output = self.add_weight(
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
    def output_table(self) -> Any:
        """What predicts tokens, (V, D); None where `token_embedding` does."""
        if self._arguments["tied_output"] and self._arguments["target_table"]:
            return self.target_embeddings.token.embeddings
        return self._own_output

    @property
    def starts(self) -> dict[str, dict[str, str]]:
        """By part: its weights' names, and theirs in the network that it starts from."""
        names = [*named_weights(self)]
        encoder = {n: n for n in names if n.startswith(("embeddings/", "block_"))}
        decoder = {n: n.removeprefix("target_") for n in names if n.startswith("target_")}
        decoder |= {n: n for n in names if n == "output_table"}
        for number in range(self._arguments["num_layers"]):
            cell = self.decoder.cells[number].name
            decoder |= {
                f"decoder/{cell}/{each}": f"block_{number}/forward/{each}"
                for each in ("kernel", "recurrent_kernel", "bias")
            }
        return {"encoder": encoder, "decoder": decoder}

    @property
    def key_dim(self) -> int:
        """Width of what the decoder's states are held against."""
        return self.decoder.key_dim

    @property
    def num_states(self) -> int:
        """Vectors, (D,) each, that are kept of a text that is written token by token."""
        return self.decoder.num_states

    def memorised(self, features: Mapping[str, Any], training: bool | None = None) -> Memory:
        """Read the text; what the decoder knows of it."""
        x = self.embeddings(features[keys.TOKEN_IDS], training=training)
        states: list[Any] = []
        first: Any = None
        for number, block in enumerate(self.blocks):
            if number:
                x = self.dropout_layer(x, training=training)
            x, last = block(x, mask=features.get(keys.PADDING_MASK))
            first = x if first is None else first
            states += last
        if self._arguments["multi_layer_attention"]:
            x = ops.concatenate([first, x], axis=-1)
        return self.decoder.memory(x, states)

    def read_alone(
        self, features: Mapping[str, Any], training: bool | None = None
    ) -> tuple[Any, Any]:
        """What each side's first layer says as a language model, which knows nothing of the other.

        Args:
            features: token_ids (B, T), padding_mask? (B, T), target_ids (B, S) and target_mask?
                (B, S).
            training: Whether dropout applies.

        Returns:
            The first layers' states, (B, T, D) and (B, S, D) float32.
        """
        x = self.embeddings(features[keys.TOKEN_IDS], training=training)
        source, _ = self.blocks[0](x, features.get(keys.PADDING_MASK))
        y = self.target_embeddings(features[keys.TARGET_IDS], training=training)
        target = self.decoder.read_alone(y, features.get(keys.TARGET_MASK))
        return (
            self.dropout_layer(source, training=training),
            self.dropout_layer(target, training=training),
        )

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Read the text, then the target; other keys of `features` are ignored."""
        memory = self.memorised(features, training)
        ids, mask = target_of(features)
        states = self._read(ids, memory.states, memory, features, mask, training)
        return {keys.SEQUENCE_OUTPUT: states[-1]}

    def go_on(self, features: Mapping[str, Any], states: Any, memory: Memory) -> tuple[Any, Any]:
        """Read tokens that continue targets, without reading those before them again.

        Args:
            features: target_ids (B, N) of the new tokens; padding_mask (P, T) of the texts.
            states: (num_states, B, D), those after the tokens before.
            memory: What `memorised` gives for P texts, where P divides B.

        Returns:
            sequence_output of the new tokens (B, N, D) float32, and the states after each,
            (num_states, B, N, D) float32. Both equal those of one reading of all tokens up to
            rounding.
        """
        before = [states[number] for number in range(self.num_states)]
        found = self._read(features[keys.TARGET_IDS], before, memory, features)
        return found[-1], ops.stack(found)

    def _read(
        self,
        token_ids: Any,
        states: Any,
        memory: Memory,
        features: Mapping[str, Any],
        mask: Any = None,
        training: bool | None = None,
    ) -> list[Any]:
        """The decoder's states after each token, (B, N, D) each."""
        seen = features.get(keys.ATTENDED_MASK, features.get(keys.PADDING_MASK))
        x = self.target_embeddings(token_ids, training=training)
        return self.decoder(x, states, memory, mask=mask, attended=seen, training=training)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}
