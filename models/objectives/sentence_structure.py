"""Sentence structure prediction: is the second segment the next, the previous, or from elsewhere?

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

    "Previous" is a question of order, not of segment ids: the first segment of the row is always
    segment 0.
    """

    name = "sentence_structure"
    classes = ("next", "previous", "random")
    relations = (Relation.NEXT, Relation.PREVIOUS, Relation.RANDOM)

    def relation(self, collected: int, chance: Chance) -> Relation:
        """A third each; a sentence alone gets a random partner, so those are a little more."""
        return Relation.RANDOM if collected == 1 else self.relations[chance.below(3)]
