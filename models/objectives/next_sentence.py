"""Next sentence prediction: does the second segment follow the first, or is it from elsewhere?

Reference:
    Devlin et al. 2019, arXiv 1810.04805, 3.1 task 2.
"""

from __future__ import annotations

from models.inputs import segments
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class NextSentence(SentencePairs):
    """Both halves of next sentence prediction.

    A little more than half of the pairs are random, because a single sentence at a document's end
    has no successor.
    """

    name = "next_sentence"
    classes = ("next", "random")
    pair_index = staticmethod(segments.pair_index)
