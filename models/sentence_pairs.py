"""What the objectives share that choose pairs of segments and ask how the two stand together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from models.inputs import segments
from models.layers.pooled_classifier import PooledClassifier
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus


class SentencePairs:
    """Both halves of such an objective; it chooses the segments of its stage.

    A batch has ``<name>_labels`` (B,) int32, predictions are ``<name>_logits`` (B, classes).

    Attributes:
        name: Of the objective, which is that of its file.
        classes: What each label says of a pair.
        pair_index: Draws the pairs of a corpus: (corpus, sequence length, rng) → Index.

    Args:
        context: What is fixed for the stage.
    """

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]
    pair_index: ClassVar[Callable[..., Index]]
    needs = frozenset((Capability.POOLED_OUTPUT, Capability.SEGMENTS))
    provides: frozenset[Capability] = frozenset()
    chooses = 2
    prepares = False

    def __init__(self, context: Context):
        self.context = context
        self.labels, self.logits = f"{self.name}_labels", f"{self.name}_logits"

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Pairs of segments."""
        return type(self).pair_index(corpus, self.context.sequence_length, rng)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The clean pairs and their labels."""
        return segments.pairs(corpus, entries, self.context, self.labels)

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(network, self.name, len(self.classes), self.labels, self.logits)

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[str]:
        """One of `classes`, a row."""
        return [self.classes[i] for i in np.asarray(outputs[self.logits]).argmax(axis=-1)]
