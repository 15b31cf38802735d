"""Span boundary objective: predict a masked span's tokens from the two tokens next to the span.

    hidden state before the span, hidden state after it, embedding of the position in the span
      → dense → GELU → LayerNorm → dense → GELU → LayerNorm → tied token embedding and a bias

Reference:
    Joshi et al. 2020 (SpanBERT), arXiv 1907.10529, 3.2.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from fourstage.errors import RecipeError
from models import features as keys
from models.inputs import noise
from models.keras_ops import ops
from models.layers.gather import gather_positions
from models.layers.loss import cross_entropy
from models.layers.projection import ActivatedProjection
from models.layers.scorer import Scored, ScorerLayer
from models.layers.token_scores import tied_logits
from models.protocols import Batch, Context

NEEDS = ("bidirectional", "token_logits")
PROVIDES = ()
CHOOSES = 0
PREPARES = False

SPAN_BEFORE = "span_before"  # (B, M) int32, position before the span of each slot
SPAN_BEHIND = "span_behind"  # (B, M) int32, position after it
SPAN_PLACES = "span_places"  # (B, M) int32, position of the slot's token in its span, from 0
SPAN_LABELS = "span_labels"  # (B, M) int32, the original tokens
SPAN_WEIGHTS = "span_weights"  # (B, M) float32
SPAN_LOGITS = "span_logits"  # (B, M, V)


class SpanBoundary:
    """Both halves of the span boundary objective; masked_lm runs before it and masks the spans.

    A span is a run of positions that masked_lm chose, so adjacent spans count as one. Its
    boundaries may be [CLS] or [SEP].

    Args:
        context: The stage's constants.
        num_places: Rows of the table of positions in a span. Only the first `num_places` tokens of
            a span are predicted.
        place_dim: Width of that table.

    Reference:
        The published command of facebookresearch/SpanBERT: ``--max-pair-targets 15
        --pair-positional-embedding-size 200``.
    """

    chooses = CHOOSES

    def __init__(self, context: Context, *, num_places: int = 15, place_dim: int = 200):
        self.context = context
        self.num_places = num_places
        self.place_dim = place_dim

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add boundaries, positions in the span, labels and weights for masked_lm's slots."""
        if keys.MASK_POSITIONS not in batch:
            raise RecipeError(
                "objectives: span_boundary predicts the spans that masked_lm hides; name masked_lm "
                "before it"
            )
        positions, used = batch[keys.MASK_POSITIONS], batch[keys.MASK_WEIGHTS] > 0
        chosen = np.zeros(batch[keys.TOKEN_IDS].shape, bool)
        rows, slots = np.nonzero(used)
        chosen[rows, positions[rows, slots]] = True
        first, last = (np.take_along_axis(end, positions, axis=1) for end in noise.runs(chosen))
        places = positions - first
        counted = used & (places < self.num_places)

        def kept(values: np.ndarray) -> np.ndarray:
            return np.where(counted, values, 0).astype(np.int32)

        return batch | {
            SPAN_BEFORE: kept(first - 1),
            SPAN_BEHIND: kept(last + 1),
            SPAN_PLACES: kept(places),
            SPAN_LABELS: kept(batch[keys.MASK_LABELS]),
            SPAN_WEIGHTS: counted.astype(np.float32),
        }

    def attach(self, network: Any) -> _SpanBoundaryScorer:
        """The head: a table of positions in a span, two dense layers, tied token embedding."""
        return _SpanBoundaryScorer(network, self.num_places, self.place_dim)


class _SpanBoundaryScorer(ScorerLayer):
    """Predicts from the boundaries only, not from the hidden states of the masked positions."""

    reads = (SPAN_BEFORE, SPAN_BEHIND)

    def __init__(self, network: Any, num_places: int, place_dim: int):
        dtype = network.dtype_policy.name
        super().__init__(name="span_boundary", dtype=dtype, autocast=False)
        # Wrapped in a function, so that Keras does not track the network's embedding here.
        self._table = lambda: network.token_embedding.embeddings
        self._scale: float | None = getattr(network, "output_scale", None)
        self.input_dim = 2 * network.hidden_dim + place_dim
        self.hidden_dim = network.hidden_dim
        self.vocabulary_size, self.embedding_dim = self.tied_embedding.shape
        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)
        self.place = keras.layers.Embedding(
            num_places,
            place_dim,
            embeddings_initializer=initializer,
            name="place",
            dtype="float32",
        )

        def dense(units: int, name: str) -> ActivatedProjection:
            return ActivatedProjection(units, activation=network.activation, name=name, dtype=dtype)

        def norm(name: str) -> keras.layers.LayerNormalization:
            epsilon = network.layer_norm_epsilon
            return keras.layers.LayerNormalization(epsilon=epsilon, name=name, dtype="float32")

        self.first, self.first_norm = dense(self.hidden_dim, "first"), norm("first_norm")
        self.second, self.second_norm = dense(self.embedding_dim, "second"), norm("second_norm")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Create the variables."""
        self.place.build((None, None))
        self.first.build((None, None, self.input_dim))
        self.first_norm.build((None, None, self.hidden_dim))
        self.second.build((None, None, self.hidden_dim))
        self.second_norm.build((None, None, self.embedding_dim))
        self.output_bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", name="output_bias", autocast=False
        )
        self.built = True

    @property
    def tied_embedding(self) -> Any:
        """The network's token embedding, used as the output matrix, (V, E)."""
        return self._table()

    def call(self, batch: dict, outputs: dict, training: bool | None = None) -> Scored:
        """Loss and accuracy of the slots, and their logits (B, M, V)."""
        if SPAN_BEFORE not in batch:
            return {}, {}
        states = outputs[keys.SEQUENCE_OUTPUT]
        hidden = ops.concatenate(
            [
                gather_positions(states, batch[SPAN_BEFORE]),
                gather_positions(states, batch[SPAN_BEHIND]),
                self.place(batch[SPAN_PLACES]),
            ],
            axis=-1,
        )  # (B, M, 2·D + place_dim)
        hidden = ops.cast(hidden, self.compute_dtype)
        hidden = self.first_norm(self.first(hidden, training=training))  # (B, M, D)
        hidden = ops.cast(hidden, self.compute_dtype)
        hidden = self.second_norm(self.second(hidden, training=training))  # (B, M, E)
        logits = tied_logits(
            hidden, self.tied_embedding, self.output_bias, self.compute_dtype, self._scale
        )
        if SPAN_LABELS not in batch:
            return {}, {SPAN_LOGITS: logits}
        weights = batch[SPAN_WEIGHTS]
        weights = self.weighted(batch, weights)
        return cross_entropy(logits, batch[SPAN_LABELS], weights), {SPAN_LOGITS: logits}
