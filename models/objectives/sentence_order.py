"""Sentence order prediction: are two consecutive segments in their original order or swapped?

Reference:
    Lan et al. 2020, arXiv 1909.11942, 3.1.
"""

from __future__ import annotations

from models.inputs.pairs import Relation
from models.inputs.segments import Chance
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class SentenceOrder(SentencePairs):
    """Both halves of sentence order prediction.

    Both segments are from one document, so that their topic does not give the answer away. Label 0
    means in order, as in Hugging Face's head.

    A single last sentence is paired with the one before it, which is then used twice; a document
    of one sentence gives no pair.

    Differs from the paper:
        ALBERT's code pairs a single sentence with one from another document, where order has no
        meaning.
    """

    name = "sentence_order"
    classes = ("in order", "swapped")
    relations = (Relation.NEXT, Relation.PREVIOUS)
    alone = False

    def relation(self, collected: int, chance: Chance) -> Relation:
        """`PREVIOUS` (swapped) or `NEXT`, with probability 1/2 each."""
        return Relation.PREVIOUS if chance.uniform() < 0.5 else Relation.NEXT
