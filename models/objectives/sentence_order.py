"""Sentence order prediction: do two consecutive segments stand in their order, or swapped?

Reference:
    Lan et al. 2020, arXiv 1909.11942, 3.1.
"""

from __future__ import annotations

from models.inputs import segments
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class SentenceOrder(SentencePairs):
    """Both halves of sentence order prediction.

    Both segments are from one document, so that their subject tells nothing. Label 0 means that
    they are in order, as in Hugging Face's head.
    """

    name = "sentence_order"
    classes = ("in order", "swapped")
    pair_index = staticmethod(segments.ordered_pair_index)
