"""Next sentence prediction: does the second segment follow the first or come from elsewhere?

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 3.1 task 2.
"""

from __future__ import annotations

from models.inputs.pairs import Relation
from models.inputs.segments import Chance
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class NextSentence(SentencePairs):
    """Both halves of next sentence prediction.

    Slightly more than half of the pairs are random, because a single last sentence of a document
    has no successor.
    """

    name = "next_sentence"
    classes = ("next", "random")
    relations = (Relation.NEXT, Relation.RANDOM)

    def relation(self, collected: int, chance: Chance) -> Relation:
        """`RANDOM` with probability 1/2, and always for a single sentence; else `NEXT`."""
        return Relation.RANDOM if collected == 1 or chance.uniform() < 0.5 else Relation.NEXT
