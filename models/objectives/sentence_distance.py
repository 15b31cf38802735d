"""Sentence distance: do two segments follow each other, share a document, or not even that?

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

    "Same document" is what neither follows nor comes right before the first segment.
    """

    name = "sentence_distance"
    classes = ("adjacent", "same document", "other document")
    relations = (Relation.NEXT, Relation.APART, Relation.RANDOM)

    def relation(self, collected: int, chance: Chance) -> Relation:
        """A third each, as far as documents have an elsewhere; else the other document."""
        how = self.relations[chance.below(3)]
        return Relation.RANDOM if collected == 1 and how == Relation.NEXT else how
