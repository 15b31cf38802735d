"""Sentence reordering: a paragraph in a few pieces, shuffled; in which order are they?

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np

from fourstage.errors import RecipeError
from models.inputs import pieces
from models.layers.pooled_classifier import PooledClassifier
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus

NEEDS = ("pooled_output",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False
MOST = 5  # pieces: 153 classes

SENTENCE_REORDERING_LABELS = "sentence_reordering_labels"  # (B,) int32, a number of `orders`
SENTENCE_REORDERING_LOGITS = "sentence_reordering_logits"  # (B, N)


def orders(most: int) -> list[tuple[int, ...]]:
    """Every order of 1 … `most` pieces: few pieces first, and those of as many as in a dictionary.

    An order says which piece of the paragraph stands at each place of the row. There are
    Σ k! of them: 1 + 2 + 6 = 9 for three pieces.
    """
    return [order for count in range(1, most + 1) for order in permutations(range(count))]


class SentenceReordering:
    """Both halves of sentence reordering; it chooses the segments of its stage.

    Args:
        context: What is fixed for the stage.
        max_pieces: Most pieces of a paragraph (m in the paper), 2-5. Each number of them is as
            likely as another, and so is each order of as many.

    Differs from the paper:
        It does not say where a paragraph is cut nor what parts the pieces; here paragraphs are cut
        between sentences and each piece ends with [SEP].

    Raises:
        RecipeError: If the number is out of range.
    """

    needs = frozenset(Capability(name) for name in NEEDS)
    provides = frozenset(Capability(name) for name in PROVIDES)
    chooses = CHOOSES
    prepares = PREPARES

    def __init__(self, context: Context, *, max_pieces: int = 3):
        if not 2 <= max_pieces <= MOST:
            raise RecipeError(
                "objectives.sentence_reordering.max_pieces: expected a whole number from 2 to "
                f"{MOST}, got {max_pieces}"
            )
        self.context = context
        self.max_pieces = max_pieces
        self.orders = orders(max_pieces)

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Paragraphs, where they are cut and in which order the pieces stand."""
        return pieces.reordered_index(corpus, self.context.sequence_length, self.orders, rng)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The pieces in their new order, and its number."""
        return pieces.reordered(
            corpus, entries, self.orders, self.context, SENTENCE_REORDERING_LABELS
        )

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> PooledClassifier:
        """The head: one dense layer on the pooled vector."""
        return PooledClassifier(
            network,
            "sentence_reordering",
            len(self.orders),
            SENTENCE_REORDERING_LABELS,
            SENTENCE_REORDERING_LOGITS,
        )

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[tuple[int, ...]]:
        """Which piece of the paragraph, counted from 0, stands at each place, a row."""
        classes = np.asarray(outputs[SENTENCE_REORDERING_LOGITS]).argmax(axis=-1)
        return [self.orders[i] for i in classes]
