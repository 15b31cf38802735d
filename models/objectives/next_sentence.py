"""Next sentence prediction: does the second segment follow the first, or is it from elsewhere?

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 3.1 task 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from models import features as keys
from models.inputs import segments
from models.layers.loss import cross_entropy
from models.layers.projection import projection
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False

NEXT_SENTENCE_LOGITS = "next_sentence_logits"  # (B, 2)


class NextSentence:
    """Both halves of next sentence prediction; it chooses the segments of its stage.

    Label 0 means that the second segment follows the first. A little more than half of the pairs
    are random, because a single sentence at a document's end has no successor.

    Args:
        context: What is fixed for the stage.
    """

    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)
    chooses = CHOOSES
    prepares = PREPARES

    def __init__(self, context: Context):
        self.context = context

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Pairs of segments of one document or two."""
        return segments.pair_index(corpus, self.context.sequence_length, rng)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The clean pairs and their labels."""
        return segments.pairs(corpus, entries, self.context)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> _NextSentenceScorer:
        """The head: one dense layer on the pooled vector."""
        return _NextSentenceScorer(network)

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[bool]:
        """Whether the second segment follows the first."""
        return (np.asarray(outputs[NEXT_SENTENCE_LOGITS]).argmax(axis=-1) == 0).tolist()


class _NextSentenceScorer(keras.layers.Layer):
    """Two scores from the pooled vector."""

    def __init__(self, network: Any):
        dtype = network.dtype_policy.name
        super().__init__(name="next_sentence", dtype=dtype, autocast=False)
        self.hidden_dim = network.hidden_dim
        self.output_projection = projection(2, name="output", dtype=dtype)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Make the variables."""
        self.output_projection.build((None, self.hidden_dim))
        self.built = True

    def prepare(self, batch: dict, training: bool) -> dict:
        """Nothing to change."""
        return batch

    def call(
        self, batch: dict, outputs: dict, training: bool | None = None
    ) -> tuple[dict[str, tuple[Any, Any]], dict]:
        """Loss and accuracy, one a row."""
        logits = ops.cast(self.output_projection(outputs[keys.POOLED_OUTPUT]), "float32")  # (B, 2)
        predictions = {NEXT_SENTENCE_LOGITS: logits}
        if keys.NEXT_SENTENCE_LABELS not in batch:
            return {}, predictions
        labels = batch[keys.NEXT_SENTENCE_LABELS]
        weights = batch.get(keys.ROW_WEIGHTS)
        if weights is None:
            weights = ops.ones_like(labels, dtype="float32")
        return cross_entropy(logits, labels, weights), predictions
