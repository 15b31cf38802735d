"""Sentence structure prediction: is the second segment the next, the previous, or from elsewhere?

Reference:
    Wang et al. 2020 (StructBERT), arXiv 1908.04577, 2.2.2.
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

SENTENCE_STRUCTURE_LABELS = (
    "sentence_structure_labels"  # (B,) int32, 0 = next, 1 = previous, 2 = random
)
SENTENCE_STRUCTURE_LOGITS = "sentence_structure_logits"  # (B, 3)


class SentenceStructure:
    """Both halves of three-way sentence prediction; it chooses the segments of its stage.

    "Previous" is a question of order, not of segment ids: the first segment of the row is always
    segment 0.

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
        return segments.three_way_pair_index(corpus, self.context.sequence_length, rng)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The clean pairs and their labels."""
        return segments.pairs(corpus, entries, self.context, SENTENCE_STRUCTURE_LABELS)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(
            network, "sentence_structure", 3, SENTENCE_STRUCTURE_LABELS, SENTENCE_STRUCTURE_LOGITS
        )

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[str]:
        """``next``, ``previous`` or ``random``, a row."""
        classes = np.asarray(outputs[SENTENCE_STRUCTURE_LOGITS]).argmax(axis=-1)
        return [("next", "previous", "random")[i] for i in classes]
