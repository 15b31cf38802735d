"""What Transformers with relative positions and a memory of the rows before share.

    token_ids, memory (P tokens before the row), memory_mask
      → token vectors → dropout                                              (B, T, D)
      → num_layers × [attention from the row to memory and row, feed-forward network]
      → sequence_output (B, T, D), and the memory for the row that follows

A layer's memory holds what entered it, so its keys and values are those of another reading with
longer rows. No gradient reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.attention import bias_from_padding
from models.layers.embedding import TextEmbedding, with_added
from models.layers.relative_attention import HeadBiases, distance_table
from models.layers.relative_block import RelativeBlock
from models.layers.transformer import TransformerConfig


@dataclass(frozen=True, kw_only=True)
class RelativeConfig(TransformerConfig):
    """The arguments that every `RelativeTransformer` has; a family adds its own.

    Attributes:
        max_sequence_length: Longest text in tokens that is read at once; no weight depends on it.
        memory_length: Tokens that are remembered of the rows before; 0 for none.
        evaluation_memory_length: As many on held-out text; None for as many as in training.
        clamp_length: Distances beyond it count as it, in tokens; 0 for no limit.
    """

    memory_length: int = 0
    evaluation_memory_length: int | None = None
    clamp_length: int = 0


class RelativeTransformer(keras.Model):
    """Token vectors → blocks with relative positions; a family says what sees what.

    Variables are made in the constructor, as in `models.layers.transformer`. A row is read without
    memory where there is none in the features.

    Attributes:
        config_class: Of the family's arguments, a `RelativeConfig`.
        ahead: Whether there are keys behind the query.
        by_segment: Whether attention tells segments apart.

    Args:
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax, memory and the residual stream are float32 in both.
        name: Of the model; the family's where None.
        arguments: Those of `config_class`.

    Raises:
        RecipeError: An argument is out of range, or a memory does not fit the batch.
    """

    config_class: type[RelativeConfig] = RelativeConfig
    ahead = False
    by_segment = False

    def __init__(self, *, dtype: str = "float32", name: str | None = None, **arguments: Any):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype, autocast=False)
        config = self.config_class(**arguments)
        self._arguments = asdict(config)
        for argument, value in self._arguments.items():
            setattr(self, argument, value)
        _check(config)
        self.order = tuple(range(config.num_layers))
        self.embeddings = TextEmbedding(
            vocabulary_size=config.vocabulary_size,
            hidden_dim=config.hidden_dim,
            max_sequence_length=None,
            num_segments=0,
            dropout=config.dropout,
            layer_norm_epsilon=None,
            scale=self.embedding_scale(config),
        )
        tied = self._arguments.get("tied_biases", False)
        head_dim = config.hidden_dim // config.num_heads
        self.biases = HeadBiases(config.num_heads, head_dim) if tied else None
        self.blocks = [
            RelativeBlock(
                hidden_dim=config.hidden_dim,
                num_heads=config.num_heads,
                intermediate_dim=config.intermediate_dim,
                dropout=config.dropout,
                attention_dropout=self._arguments.get("attention_dropout", config.dropout),
                activation=config.activation,
                layer_norm_epsilon=config.layer_norm_epsilon,
                norm_first=self._arguments.get("norm_first", False),
                own_biases=not tied,
                by_segment=self.by_segment,
                inner_dropout=True,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in self.order
        ]
        self.dropout_layer = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self.build()

    def embedding_scale(self, config: Any) -> float:
        """Factor on the token vectors."""
        return 1.0

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        self.embeddings.build((None, None))
        if self.biases is not None:
            self.biases.build()
        for block in self.blocks:
            block.build((None, None, block.hidden_dim))
        self.built = True

    @property
    def key_dim(self) -> int:
        """K, width per head."""
        return self._arguments["hidden_dim"] // self._arguments["num_heads"]

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The token table; heads that tie weights use its very variable."""
        return self.embeddings.token

    # Memory

    @property
    def memory(self) -> dict[str, tuple[int, ...]]:
        """What is remembered of each row, without the batch's axis; nothing with length 0."""
        return self._memory_of(self._arguments["memory_length"])

    @property
    def evaluation_memory(self) -> dict[str, tuple[int, ...]]:
        """As `memory`, on held-out text."""
        longer = self._arguments["evaluation_memory_length"]
        return self.memory if longer is None else self._memory_of(longer)

    def _memory_of(self, length: int) -> dict[str, tuple[int, ...]]:
        if not length:
            return {}
        shape = (len(self.order), length, self._arguments["hidden_dim"])
        return {keys.MEMORY: shape, keys.MEMORY_MASK: (length,)}

    def memories(self, features: Mapping[str, Any]) -> list[Any]:
        """What each layer remembers, (B, P, D), without its gradient; None without memory.

        Raises:
            RecipeError: The memory is not of this network, or of other rows than the batch's.
        """
        memory = features.get(keys.MEMORY)
        if memory is None:
            return [None] * len(self.order)
        rows, read = memory.shape[0], features[keys.TOKEN_IDS].shape[0]
        if None not in (rows, read) and rows != read:
            raise RecipeError(
                f"memory: of {rows} rows, but the batch has {read}; row b goes on from row b of the"
                " batch before, so every batch needs the same number of rows"
            )
        _, layers, _, width = memory.shape
        if (layers, width) != (len(self.order), self._arguments["hidden_dim"]):
            raise RecipeError(
                f"memory: of {layers} layers {width} wide, expected {len(self.order)} layers"
                f" {self._arguments['hidden_dim']} wide; it is another network's"
            )
        memory = ops.stop_gradient(memory)
        return [memory[:, number] for number in self.order]

    def remembered(self, states: list[Any], features: Mapping[str, Any]) -> dict[str, Any]:
        """The memory for the next row: the last P tokens before it; nothing without memory."""
        if keys.MEMORY not in features:
            return {}
        memory, mask = features[keys.MEMORY], features[keys.MEMORY_MASK]
        real = features.get(keys.PADDING_MASK)
        if real is None:
            real = ops.ones_like(features[keys.TOKEN_IDS])
        start: Any = ops.shape(real)[1]
        if keys.REMEMBERED in features:
            start = features[keys.REMEMBERED][0]
        # Of P + T tokens those up to `start` of the row: P of them, from `start` on.
        all_states = ops.concatenate([memory, ops.stack(states, axis=1)], axis=2)
        all_real = ops.concatenate([mask, ops.cast(real, mask.dtype)], axis=1)
        return {
            keys.MEMORY: ops.stop_gradient(
                ops.slice(all_states, (0, 0, start, 0), ops.shape(memory))
            ),
            keys.MEMORY_MASK: ops.slice(all_real, (0, start), ops.shape(mask)),
        }

    # Reading

    def keys_bias(self, features: Mapping[str, Any]) -> Any:
        """Hides padding, and what of the memory is empty: (B, 1, 1, P + T), or None for nothing."""
        mask, before = features.get(keys.PADDING_MASK), features.get(keys.MEMORY_MASK)
        if before is not None:
            own = ops.ones_like(features[keys.TOKEN_IDS]) if mask is None else mask
            mask = ops.concatenate([before, ops.cast(own, before.dtype)], axis=1)
        return None if mask is None else bias_from_padding(mask)

    def relations(self, length: Any, total: Any, training: bool | None = None) -> dict[str, Any]:
        """What attention from the last `length` of `total` tokens has to know of distances."""
        table = distance_table(
            total,
            1 - length if self.ahead else 0,
            self._arguments["hidden_dim"],
            self._arguments["clamp_length"],
        )
        given = {"table": self.dropout_layer(table, training=training)}
        if self.biases is not None:
            given["biases"] = self.biases.values
        return given

    def seen(self, features: Mapping[str, Any], training: bool | None) -> dict[str, Any]:
        """Arguments of the row's attention: distances, and what is hidden; a family's own."""
        raise NotImplementedError

    def embed(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """What enters the first block, (B, T, D) float32."""
        x = self.embeddings(features[keys.TOKEN_IDS], training=training)
        return with_added(x, features)

    @property
    def num_hidden_states(self) -> int:
        """L + 1: what enters the first block, and what each layer gives."""
        return len(self.order) + 1

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """What enters the first block, and what each layer gives: L + 1 of (B, T, D) float32."""
        states = [self.embed(features, training)]
        memories, seen = self.memories(features), self.seen(features, training)
        for block, memory in zip(self.blocks, memories, strict=True):
            states.append(block(states[-1], memory=memory, training=training, **seen))
        return states

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        *before, x = self.hidden_states(features, training)
        x = self.dropout_layer(x, training=training)
        return {keys.SEQUENCE_OUTPUT: x, **self.remembered(before, features)}

    def lengths(self, features: Mapping[str, Any]) -> tuple[Any, Any]:
        """T, and P + T."""
        own = ops.shape(features[keys.TOKEN_IDS])[1]
        if keys.MEMORY not in features:
            return own, own
        return own, ops.shape(features[keys.MEMORY_MASK])[1] + own

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}


def _check(config: RelativeConfig) -> None:
    """Refuse widths and lengths that mean nothing.

    Raises:
        RecipeError: An argument is out of range.
    """
    if config.hidden_dim % 2:
        raise RecipeError(
            f"size.hidden_dim: expected an even width, half for sines and half for cosines, got"
            f" {config.hidden_dim}"
        )
    for name in ("memory_length", "evaluation_memory_length", "clamp_length"):
        value = getattr(config, name)
        if value is not None and value < 0:
            raise RecipeError(f"size.{name}: expected a number of tokens from 0, got {value}")
    if config.evaluation_memory_length and not config.memory_length:
        raise RecipeError(
            f"size.evaluation_memory_length: {config.evaluation_memory_length} tokens, but"
            " memory_length is 0: a network that was trained without memory can't use one"
        )
