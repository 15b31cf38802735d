"""Sentence distance: do two segments follow each other, share a document, or not even that?

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.2.
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

SENTENCE_DISTANCE_LABELS = (
    "sentence_distance_labels"  # (B,) int32, 0 = adjacent, 1 = same document, 2 = other document
)
SENTENCE_DISTANCE_LOGITS = "sentence_distance_logits"  # (B, 3)


class SentenceDistance:
    """Both halves of sentence distance; it chooses the segments of its stage.

    "Same document" is what neither follows nor comes right before the first segment.

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
        return segments.distance_pair_index(corpus, self.context.sequence_length, rng)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The clean pairs and their labels."""
        return segments.pairs(corpus, entries, self.context, SENTENCE_DISTANCE_LABELS)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(
            network, "sentence_distance", 3, SENTENCE_DISTANCE_LABELS, SENTENCE_DISTANCE_LOGITS
        )

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[str]:
        """``adjacent``, ``same document`` or ``other document``, a row."""
        classes = np.asarray(outputs[SENTENCE_DISTANCE_LOGITS]).argmax(axis=-1)
        return [("adjacent", "same document", "other document")[i] for i in classes]
