"""Sentence distance: do two segments follow each other, share a document, or not even that?

Reference:
    Sun et al. 2020 (ERNIE 2.0), arXiv 1907.12412, 4.2.2.
"""

from __future__ import annotations

from models.inputs import segments
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
    pair_index = staticmethod(segments.distance_pair_index)
