"""Token-document relation: does a token of this stretch occur elsewhere in its document too?

What comes again and again is a common word or what the document is about.

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from models.inputs import pieces
from models.layers.token_classifier import TokenClassifier
from models.protocols import Batch, Capability, Context, Index, TokenisedCorpus

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False

TOKEN_DOCUMENT_LABELS = "token_document_labels"  # (B, T) int32, 1 = elsewhere too
TOKEN_DOCUMENT_WEIGHTS = "token_document_weights"  # (B, T) float32, 1 at the document's tokens
TOKEN_DOCUMENT_LOGITS = "token_document_logits"  # (B, T, 2)


class TokenDocument:
    """Both halves of the token-document relation; it chooses the segments of its stage.

    A row is a stretch of one document. Labels are made from the clean text, so that other
    objectives may hide or change its tokens.

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
        """Stretches of single documents, two or more of each."""
        return pieces.stretch_index(corpus, self.context.sequence_length)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The clean stretches with labels and weights, (B, T)."""
        batch = pieces.stretches(corpus, entries, self.context)
        shape = (len(entries), self.context.sequence_length)
        labels, weights = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        elsewhere = np.zeros(self.context.tokenizer.vocabulary_size, bool)  # faster than np.isin
        for row, (document, start, end) in enumerate(entries.tolist()):
            tokens = corpus.document(document)[0]
            elsewhere[tokens[:start]] = elsewhere[tokens[end:]] = True
            labels[row, 1 : 1 + end - start] = elsewhere[tokens[start:end]]
            elsewhere[tokens] = False
            weights[row, 1 : 1 + end - start] = 1.0
        return batch | {TOKEN_DOCUMENT_LABELS: labels, TOKEN_DOCUMENT_WEIGHTS: weights}

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Nothing to add: labels come with the segments."""
        return batch

    def attach(self, network: Any) -> TokenClassifier:
        """The head: one dense layer on each token's vector."""
        return TokenClassifier(
            network,
            "token_document",
            2,
            TOKEN_DOCUMENT_LABELS,
            TOKEN_DOCUMENT_WEIGHTS,
            TOKEN_DOCUMENT_LOGITS,
        )

    def decode(self, outputs: Mapping[str, np.ndarray]) -> list[list[bool]]:
        """Whether a token occurs elsewhere too, token by token of a row."""
        return (np.asarray(outputs[TOKEN_DOCUMENT_LOGITS]).argmax(axis=-1) == 1).tolist()
