"""Sentence order prediction: do two consecutive segments stand in their order, or swapped?

Reference:
    Lan et al. 2020, arXiv 1909.11942, 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.inputs import segments
from models.layers.pooled_classifier import PooledClassifier
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False

SENTENCE_ORDER_LABELS = "sentence_order_labels"  # (B,) int32, 0 = in order, 1 = swapped
SENTENCE_ORDER_LOGITS = "sentence_order_logits"  # (B, 2)


class SentenceOrder:
    """Both halves of sentence order prediction; it chooses the segments of its stage.

    Both segments are from one document, so that their subject tells nothing. Label 0 means that
    they are in order, as in Hugging Face's head.

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
        """Pairs of segments."""
        return segments.ordered_pair_index(corpus, self.context.sequence_length, rng)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The clean pairs and their labels."""
        return segments.pairs(corpus, entries, self.context, SENTENCE_ORDER_LABELS)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(
            network, "sentence_order", 2, SENTENCE_ORDER_LABELS, SENTENCE_ORDER_LOGITS
        )

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[bool]:
        """Whether the two segments are in order."""
        return (np.asarray(outputs[SENTENCE_ORDER_LOGITS]).argmax(axis=-1) == 0).tolist()
