"""Token-document relation: does a token of a segment also occur elsewhere in its document?

Repeated tokens are common words or belong to the document's topic.

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fourstage.errors import ContractViolation
from models.inputs.segments import SEGMENT, empty_rows, room_for, write_row
from models.layers.token_classifier import TokenClassifier
from models.protocols import Batch, Context, Index, TokenisedCorpus

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 2
PREPARES = False

TOKEN_DOCUMENT_LABELS = "token_document_labels"  # (B, T) int32, 1 = also occurs elsewhere
TOKEN_DOCUMENT_WEIGHTS = "token_document_weights"  # (B, T) float32, 1 at tokens of the document
TOKEN_DOCUMENT_LOGITS = "token_document_logits"  # (B, T, 2)


class TokenDocument:
    """Both halves of the token-document relation; it chooses the segments of its stage.

    A row is a segment of one document. Labels are made from the original text, so other objectives
    may corrupt its tokens.

    Args:
        context: The stage's constants.
    """

    chooses = CHOOSES

    def __init__(self, context: Context):
        self.context = context

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Segments: each document is cut into equal parts, as few as fit in rows but at least two.

        With two parts, every segment has a rest of the document to compare with. A document of one
        token is skipped.

        Raises:
            ContractViolation: No document has two tokens.
        """
        room = room_for(self.context.sequence_length, 2)
        usable = np.flatnonzero(corpus.lengths > 1)
        if not len(usable):
            raise ContractViolation(
                "token_document: needs documents of two tokens or more; the corpus has none"
            )
        lengths = corpus.lengths[usable].astype(np.int64)
        counts = np.maximum(2, -(-lengths // room))
        # Counts 2, 3 give the documents `of` 0 0 1 1 1 and the numbers 0 1 0 1 2 within them.
        of = np.repeat(np.arange(len(usable)), counts)
        number = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]
        entries = np.empty(len(of), SEGMENT)
        entries["document"] = usable[of]
        entries["start"], entries["end"] = (
            n * lengths[of] // counts[of] for n in (number, number + 1)
        )
        rows = entries["end"] - entries["start"] + 2
        padding = 1.0 - float(rows.mean()) / self.context.sequence_length
        return Index(entries, rows, details={"padding": padding})

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Rows [CLS] segment [SEP], with labels and loss weights, (B, T)."""
        batch = empty_rows(len(entries), self.context)
        shape = (len(entries), self.context.sequence_length)
        labels, weights = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        elsewhere = np.zeros(self.context.tokenizer.vocabulary_size, bool)  # faster than np.isin
        for row, (document, start, end) in enumerate(entries.tolist()):
            write_row(batch, row, corpus, [(document, start, end)], self.context)
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
