"""Sentence order prediction: do two consecutive segments stand in their order, or swapped?

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

    Both segments are from one document, so that their subject tells nothing. Label 0 means that
    they are in order, as in Hugging Face's head.

    A last sentence that would stand alone is paired with the one before it once more; a document
    of one sentence has no pair.

    Differs from the paper:
        ALBERT's code gives a lone sentence a partner from another document, which is no question
        of order.
    """

    name = "sentence_order"
    classes = ("in order", "swapped")
    relations = (Relation.NEXT, Relation.PREVIOUS)
    alone = False

    def relation(self, collected: int, chance: Chance) -> Relation:
        """Swapped half of the time."""
        return Relation.PREVIOUS if chance.uniform() < 0.5 else Relation.NEXT
