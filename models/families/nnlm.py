"""NNLM: the next token, from the vectors of the few tokens before it.

    token_ids, padding_mask
      → token vectors → dropout                                               (B, T, m)
      → x: those of the last n - 1 tokens, side by side, the last one first   (B, T, (n - 1) · m)
      → tanh(d + H x) → dropout                                               (B, T, h)
      → sequence_output (B, T, D), with `direct` [tanh(d + H x); x]

Logits are b + U tanh(d + H x), with `direct` + W x: `output_table` is U or [U W], `output_bias` is
b. So there are |V| (1 + n · m + h) + h (1 + (n - 1) · m) parameters with `direct`, and |V| (n - 1)
· m less without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import keras

from fourstage.errors import RecipeError
from models import features as keys
from models.keras_ops import ops
from models.layers.embedding import word_table
from models.layers.projection import projection
from models.layers.slices import part
from models.layers.summary import LAST
from models.protocols import Capability

PROVIDES = ("causal",)
SIZES = {
    "tiny": {"embedding_dim": 32, "intermediate_dim": 64, "direct": True, "dropout": 0.1},
    "brown": {"embedding_dim": 30, "intermediate_dim": 100},
    "ap_news": {"order": 6, "embedding_dim": 100, "intermediate_dim": 60, "direct": True},
}


@dataclass(frozen=True, kw_only=True)
class _Config:
    """The arguments; in brackets the paper's letters.

    Attributes:
        vocabulary_size: Number of token ids (|V|).
        embedding_dim: Width of a token's vector (m).
        intermediate_dim: Width of the hidden layer (h).
        order: Tokens of an n-gram (n), from 2: a token is predicted from the n - 1 before it.
        direct: Whether token vectors predict directly, too (W).
        dropout: Share dropped of token vectors and of the hidden layer, 0-1; the paper has none.
        trigram_share: Share of a trigram in the probabilities whose held-out loss is measured, 0-1;
            the paper's is 0.5. It is counted in the stages' text; no weight depends on it
            (`models.evaluation.trigram`).
    """

    vocabulary_size: int
    embedding_dim: int
    intermediate_dim: int
    order: int = 5
    direct: bool = False
    dropout: float = 0.0
    trigram_share: float = 0.0


class Nnlm(keras.Model):
    """The neural probabilistic language model of Bengio et al.

    It sees a row as a sequence, so that all its tokens are predicted in one pass; each sees itself
    and the n - 2 tokens before it. Before a row's first token, and in the place of padding, there
    are zeros.

    Shape:
        {token_ids (B, T), padding_mask? (B, T)} → {sequence_output (B, T, D) float32}, where D is
        h, with `direct` h + (n - 1) · m

    Differs from the paper:
        A text begins with [CLS], of which the paper says nothing. Weights begin as normal ones,
        truncated, of which it says nothing either. The shares of the trigram's own orders are
        fixed; the paper's are learned by the frequency of the history.

    Raises:
        RecipeError: `order` is below 2, or `trigram_share` no share.

    Reference:
        Bengio et al. 2003, Journal of Machine Learning Research 3, 2, equations 1 and 2.
    """

    config_class = _Config
    provides = frozenset(Capability(name) for name in PROVIDES)
    row_summary = LAST
    pooler_activation = None  # heads read the vector of the last token as it is

    def __init__(self, *, dtype: str = "float32", name: str | None = None, **arguments: Any):
        super().__init__(name=name or type(self).__name__.lower(), dtype=dtype, autocast=False)
        config = self.config_class(**arguments)
        if config.order < 2:
            raise RecipeError(
                f"size.order: expected a whole number from 2, got {config.order}; a token is"
                " predicted from the order - 1 before it"
            )
        if not 0 <= config.trigram_share <= 1:
            raise RecipeError(
                f"size.trigram_share: expected a share, 0 to 1, got {config.trigram_share}"
            )
        self._arguments = asdict(config)
        for argument, value in self._arguments.items():
            setattr(self, argument, value)
        self.context_length = config.order - 1
        self.context_dim = self.context_length * config.embedding_dim
        self.hidden_dim = config.intermediate_dim + (self.context_dim if config.direct else 0)
        self.embeddings = word_table(config.vocabulary_size, config.embedding_dim, config.dropout)
        self.hidden = projection(config.intermediate_dim, name="hidden", dtype=dtype, stddev=None)
        self.dropout_layer = keras.layers.Dropout(config.dropout, name="dropout", dtype="float32")
        self.output_table: Any = None
        self.output_bias: Any = None
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables, in the order in which they are listed."""
        rows = self._arguments["vocabulary_size"]
        self.embeddings.build((None, None))
        self.hidden.build((None, None, self.context_dim))
        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)
        self.output_table = self.add_weight(
            shape=(rows, self.hidden_dim),
            initializer=initializer,
            name="output_table",
            autocast=False,
        )
        self.output_bias = self.add_weight(
            shape=(rows,), initializer="zeros", name="output_bias", autocast=False
        )
        self.built = True

    @property
    def token_embedding(self) -> keras.layers.Embedding:
        """The token table C."""
        return self.embeddings.token

    def context(self, features: Mapping[str, Any], training: bool | None = None) -> Any:
        """x: the vectors of each token and of those before it, (B, T, (n - 1) · m) float32."""
        vectors = self.embeddings(features[keys.TOKEN_IDS], training=training)
        mask = features.get(keys.PADDING_MASK)
        if mask is not None:
            vectors = vectors * ops.cast(mask, "float32")[..., None]
        length, more = ops.shape(vectors)[1], self.context_length - 1
        vectors = ops.pad(vectors, ((0, 0), (more, 0), (0, 0)))
        each = [part(vectors, first, length) for first in range(more, -1, -1)]
        return ops.concatenate(each, axis=-1)

    def call(self, features: Mapping[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Read; other keys of `features` are ignored."""
        x = self.context(features, training)
        found = ops.tanh(ops.cast(self.hidden(x), "float32"))
        found = self.dropout_layer(found, training=training)
        if self._arguments["direct"]:
            found = ops.concatenate([found, x], axis=-1)
        return {keys.SEQUENCE_OUTPUT: found}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, as plain JSON values."""
        return {**self._arguments, "dtype": self.dtype_policy.name, "name": self.name}
