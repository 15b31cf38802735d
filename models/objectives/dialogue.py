"""Dialogue: was this exchange of utterances said, or is one of them from elsewhere?

Reference:
    Sun et al. 2019 (ERNIE 1.0), arXiv 1904.09223, 3.4.
"""

from __future__ import annotations

import numpy as np

from models.inputs import exchanges
from models.protocols import Batch, TokenisedCorpus
from models.sentence_pairs import SentencePairs

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False


class Dialogue(SentencePairs):
    """Both halves of the decision of ERNIE 1.0's dialogue language model.

    That model hides words too: give `masked_lm` beside it.

    Differs from the paper:
        Roles have the network's table of segments, which the paper says plays the same part, and
        no table of their own; speakers alternate, so there are query-response-query and
        query-response, but neither two queries in a row nor two responses. How often an exchange
        is fake it does not say; here half of the time.
    """

    name = "dialogue"
    classes = ("real", "fake")
    pair_index = staticmethod(exchanges.exchange_index)

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """The utterances, who says each, and whether all belong together."""
        return exchanges.exchanges(corpus, entries, self.context, self.labels)
