"""Sentence structure prediction: is the second segment the next, the previous, or from elsewhere?

Reference:
    Wang et al. 2020 (StructBERT), arXiv 1908.04577, 2.2.2.
"""

from __future__ import annotations

from models.inputs import segments
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
    pair_index = staticmethod(segments.three_way_pair_index)
