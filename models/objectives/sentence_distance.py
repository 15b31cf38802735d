"""Sentence distance: are two segments adjacent, from the same document, or from different ones?

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.2.
"""

from __future__ import annotations

from models.inputs.pairs import Relation
from models.inputs.segments import Chance
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class SentenceDistance(SentencePairs):
    """Both halves of sentence distance.

    A "same document" segment is neither right after nor right before the first segment.
    """

    name = "sentence_distance"
    classes = ("adjacent", "same document", "other document")
    relations = (Relation.NEXT, Relation.APART, Relation.RANDOM)

    def relation(self, collected: int, chance: Chance) -> Relation:
        """Each relation with probability 1/3; `RANDOM` where the drawn one is impossible."""
        how = self.relations[chance.below(3)]
        return Relation.RANDOM if collected == 1 and how == Relation.NEXT else how
