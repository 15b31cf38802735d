"""Next sentence prediction: does the second segment follow the first, or is it from elsewhere?

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 3.1 task 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models import features as keys
from models.inputs import segments
from models.layers.pooled_classifier import PooledClassifier
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus

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
        return segments.pairs(corpus, entries, self.context, keys.NEXT_SENTENCE_LABELS)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(
            network, "next_sentence", 2, keys.NEXT_SENTENCE_LABELS, NEXT_SENTENCE_LOGITS
        )

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[bool]:
        """Whether the second segment follows the first."""
        return (np.asarray(outputs[NEXT_SENTENCE_LOGITS]).argmax(axis=-1) == 0).tolist()
