"""Sentence structure prediction: is the second segment the next, the previous, or a random one?

Reference:
    Wang et al. 2020 (StructBERT), arXiv 1908.04577, 2.2.2.
"""

from __future__ import annotations

from models.inputs.pairs import Relation
from models.inputs.segments import Chance
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class SentenceStructure(SentencePairs):
    """Both halves of three-way sentence prediction.

    For "previous", the two segments are swapped in the row; the first one in the row is always
    segment 0.
    """

    name = "sentence_structure"
    classes = ("next", "previous", "random")
    relations = (Relation.NEXT, Relation.PREVIOUS, Relation.RANDOM)

    def relation(self, collected: int, chance: Chance) -> Relation:
        """Each relation with probability 1/3, but always `RANDOM` for a single sentence."""
        return Relation.RANDOM if collected == 1 else self.relations[chance.below(3)]
