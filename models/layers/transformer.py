"""What Transformers over one text share: embeddings, a row of blocks, perhaps a pooler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.attention import bias_from_padding
from models.layers.block import ResidualBlock, TransformerBlock
from models.layers.embedding import TextEmbedding, with_added
from models.layers.gather import gather_positions
from models.layers.norm import norm_layer
from models.layers.projection import projection
from models.layers.summary import FIRST
from models.protocols import Capability


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The arguments that every `TextTransformer` has; a family adds its own and changes defaults.

    Attributes:
        vocabulary_size: Number of token ids.
        num_layers: Blocks a token goes through.
        hidden_dim: Width of a token's vector.
        num_heads: Attention heads; divides `hidden_dim`.
        intermediate_dim: Width inside the feed-forward network.
        max_sequence_length: Longest text in tokens.
        dropout: Share dropped of embeddings, attention weights and residual branches, 0-1.
        activation: Of the blocks, and of the heads unless the family says otherwise: ``gelu``
            (Hugging Face's ``gelu``), ``gelu_tanh`` (Google's code), ``relu`` or ``silu``.
        layer_norm_epsilon: Added to the variance in LayerNorms.
    """

    vocabulary_size: int
    num_layers: int
    hidden_dim: int
    num_heads: int
    intermediate_dim: int
    max_sequence_length: int = 512
    dropout: float = 0.1
    activation: str = "gelu"
    layer_norm_epsilon: float = 1e-12


class TextTransformer(keras.Model):
    """Embeddings → blocks → (pooler); a family says which of these it has.

    Variables are made in the constructor, so that their paths below the network are the same
    whatever wraps it later and on every backend. Every argument becomes an attribute and goes into
    `get_config`.

    Attributes:
        config_class: Of the family's arguments, an `TransformerConfig`.
        provides: Its capabilities; a family's own.
        num_segments: Rows of the segment table; 0 for none.
        least_segments: The fewest with which a family that tells segments apart has one for each.
        num_tasks: Rows of the table of tasks; 0 for none.
        always_project: Whether embeddings are projected even where the widths are equal.
        pooled: Whether there is a pooler.
        embedding_norm: Whether the embeddings have a LayerNorm.
        norm_first: Whether blocks are pre-LN (`models.layers.block`), with a last norm.
        rms_norm: Whether norms are by the root mean square alone (`models.layers.norm`).
        has_positions: Whether there is a table of positions.
        table_stddev: Standard deviation of the initial embeddings, before truncation.

    Args:
        dtype: Policy name of the matrix products, ``float32`` or ``mixed_bfloat16``. Variables,
            LayerNorms, softmax and the residual stream are float32 in both.
        name: Of the model; the family's where None.
        arguments: Those of `config_class`.

    Shape:
        {token_ids (B, T), segment_ids? (B, T), padding_mask? (B, T), task_ids? (B,)} →
        {sequence_output (B, T, D) float32, pooled_output (B, D) float32 where pooled};
        with read_positions (B, R), the summary's first: {sequence_output (B, R, D), …}

    Raises:
        RecipeError: Segments are to be told apart, and the table has too few rows.
    """

    config_class: type[TransformerConfig] = TransformerConfig
    provides: frozenset[Capability] = frozenset()
    num_segments = 0
    least_segments = 2
    num_tasks = 0
    always_project = False
    pooled = False
    embedding_norm = True
    norm_first = False
    rms_norm = False
    has_positions = True
    table_stddev = 0.02
    reads_positions = True
    row_summary = FIRST

    def __init__(self, *, dtype: str = "float32", name: str | None = None, **arguments: Any):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype, autocast=False)
        config = self.config_class(**arguments)
        self._arguments = asdict(config)
        for argument, value in self._arguments.items():
            setattr(self, argument, value)
        if Capability.SEGMENTS in self.provides and self.num_segments < self.least_segments:
            raise RecipeError(
                f"size.num_segments: expected at least {self.least_segments}, one for each segment"
                f" that a row of {self.name} may have, got {self.num_segments}"
            )
        table_dim = self._arguments.get("embedding_dim", config.hidden_dim)
        self.order = self.layer_order(config)
        self.embeddings = self.make_embeddings(config, table_dim)
        self.embedding_projection = (
            projection(config.hidden_dim, name="embedding_projection", dtype=dtype)
            if self.always_project or table_dim != config.hidden_dim
            else None
        )
        self.blocks = [
            self.make_block(TransformerBlock, config, number)
            for number in range(max(self.order) + 1)
        ]
        self.final_norm = self.make_final_norm(config, "final_norm")
        self.pooler = None
        if self.pooled:
            self.pooler = projection(self.pooled_dim, name="pooler", dtype=dtype)
        self._widths = (table_dim, config.hidden_dim)
        self.make_more(config)
        self.build()

    def make_embeddings(self, config: Any, width: int, **more: Any) -> Any:
        """What turns tokens into vectors of a width; `more` are further arguments."""
        return TextEmbedding(
            vocabulary_size=config.vocabulary_size,
            hidden_dim=width,
            max_sequence_length=config.max_sequence_length if self.has_positions else None,
            num_segments=self.num_segments,
            num_tasks=self.num_tasks,
            dropout=config.dropout,
            layer_norm_epsilon=config.layer_norm_epsilon if self.embedding_norm else None,
            **{"stddev": self.table_stddev, **more},
        )

    def make_block(self, kind: type[ResidualBlock], config: Any, number: int) -> Any:
        """Block `number`, of a kind."""
        return kind(**self.block_arguments(config), name=f"block_{number}")

    def block_arguments(self, config: Any) -> dict[str, Any]:
        """What all blocks have in common."""
        return {
            "hidden_dim": config.hidden_dim,
            "num_heads": config.num_heads,
            "intermediate_dim": config.intermediate_dim,
            "dropout": config.dropout,
            "activation": config.activation,
            "layer_norm_epsilon": config.layer_norm_epsilon,
            "norm_first": self.norm_first,
            "rms": self.rms_norm,
            "residual_stddev": self.residual_stddev(config),
            "dtype": self.dtype_policy.name,
        }

    def make_final_norm(self, config: Any, name: str) -> Any:
        """The norm behind pre-LN blocks; None behind post-LN blocks."""
        if not self.norm_first:
            return None
        return norm_layer(name, config.layer_norm_epsilon, rms=self.rms_norm)

    def make_more(self, config: Any) -> None:
        """What a subclass has beside an encoder; its `build` makes the variables."""

    def layer_order(self, config: Any) -> tuple[int, ...]:
        """Number of the block of each layer; 0, 1, 2… unless layers share blocks."""
        return tuple(range(config.num_layers))

    def residual_stddev(self, config: Any) -> float | None:
        """Standard deviation of the initial kernels that write to the residual stream."""
        return 0.02

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        table_dim, hidden_dim = self._widths
        self.embeddings.build((None, None))
        if self.embedding_projection is not None:
            self.embedding_projection.build((None, None, table_dim))
        for block in self.blocks:
            block.build((None, None, hidden_dim))
        if self.final_norm is not None:
            self.final_norm.build((None, None, hidden_dim))
        if self.pooler is not None:
            self.pooler.build((None, hidden_dim))
        self.built = True

    @property
    def pooled_dim(self) -> int:
        """Width of ``pooled_output``."""
        return self.hidden_dim

    @property
    def key_dim(self) -> int:
        """K, width per head."""
        return self.hidden_dim // self.num_heads

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

    def attention_biases(self, features: Mapping[str, Any]) -> list[Any]:
        """`attention_bias` of each layer, for families whose layers do not all see the same."""
        return [self.attention_bias(features)] * len(self.order)

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
        return with_added(x, features)

    @property
    def num_hidden_states(self) -> int:
        """L + 1: what enters the first block, and what each layer gives."""
        return len(self.order) + 1

    def hidden_states(self, features: Mapping[str, Any], training: bool | None = None) -> list[Any]:
        """What enters the first block, and what each layer gives: L + 1 of (B, T, D) float32."""
        states = [self.embed(features, training=training)]
        biases = self.attention_biases(features)
        for number, bias in zip(self.order, biases, strict=True):
            states.append(self.blocks[number](states[-1], bias=bias, training=training))
        if self.final_norm is not None:
            states[-1] = self.final_norm(states[-1])
        return states

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encode; other keys of `features` are ignored."""
        x = self.embed(features, training=training)
        *before, last = self.order
        *biases, bias = self.attention_biases(features)
        for number, own in zip(before, biases, strict=True):
            x = self.blocks[number](x, bias=own, training=training)
        at = features.get(keys.READ_POSITIONS)
        if at is not None and bias is not None and bias.shape[2] != 1:
            everywhere = ops.broadcast_to(bias[:, 0], (ops.shape(at)[0], *ops.shape(bias)[2:]))
            bias = gather_positions(everywhere, at)[:, None]  # (B, 1, R, T)
        x = self.blocks[last](x, bias=bias, at=at, training=training)
        if self.final_norm is not None:
            x = self.final_norm(x)
        outputs = {keys.SEQUENCE_OUTPUT: x}
        if self.pooler is not None:
            pooled = ops.tanh(ops.cast(self.pooler(x[:, 0]), "float32"))  # (B, D)
            outputs[keys.POOLED_OUTPUT] = pooled
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}
