"""Capitalization prediction: was a word capitalised in the original text?

One binary prediction per word whose first letter has case, at its first token. Most tokenizers drop
case, so the labels come from the tokenised corpus. With a tokenizer that keeps case, the task is
too easy to be useful.

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models import features as keys
from models.inputs.windows import Windows
from models.layers.token_classifier import TokenClassifier
from models.protocols import Batch, Context

NEEDS = ("bidirectional",)
PROVIDES = ()
CHOOSES = 1
PREPARES = False
READS_CASE = True  # text is tokenised together with the case of its words

CAPITALIZATION_LABELS = "capitalization_labels"  # (B, T) int32, 1 = starts with a capital
CAPITALIZATION_WEIGHTS = "capitalization_weights"  # (B, T) float32, 1 where a cased word starts
CAPITALIZATION_LOGITS = "capitalization_logits"  # (B, T, 2)


class Capitalization(Windows):
    """Both halves of capitalization prediction.

    If no other objective chooses the segments, rows are full windows over the corpus.

    Args:
        context: The stage's constants.
    """

    chooses = CHOOSES

    def __init__(self, context: Context):
        self.context = context

    def examples(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Add labels and loss weights, (B, T); ``token_ids`` are unchanged."""
        marked = batch[keys.UNIT_STARTS]
        return batch | {
            CAPITALIZATION_LABELS: ((marked & keys.CAPITALISED) > 0).astype(np.int32),
            CAPITALIZATION_WEIGHTS: ((marked & keys.CASED) > 0).astype(np.float32),
        }

    def attach(self, network: Any) -> TokenClassifier:
        """The head: one dense layer on each token's vector."""
        return TokenClassifier(
            network,
            "capitalization",
            2,
            CAPITALIZATION_LABELS,
            CAPITALIZATION_WEIGHTS,
            CAPITALIZATION_LOGITS,
        )
