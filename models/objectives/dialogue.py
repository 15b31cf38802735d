"""Dialogue: was this exchange of utterances said, or is one of them from elsewhere?

A dialogue is a document whose sentences are its utterances, said by two in turn; a source with
``sentences: lines`` has one in each line.

Reference:
    Sun et al. 2019 (ERNIE 1.0), arXiv 1904.09223, 3.4.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.inputs.segments import (
    SEGMENT,
    Chance,
    empty_rows,
    room_for,
    sentence_ends_of,
    several_documents,
    write_row,
)
from models.protocols import Batch, Index, TokenisedCorpus
from models.row_classes import RowClasses

NEEDS = ("pooled_output", "segments")
PROVIDES = ()
CHOOSES = 2
PREPARES = False
MOST = 3  # utterances of an exchange: query, response, query
EXCHANGE = np.dtype([("utterances", SEGMENT, (MOST,)), ("fake", np.int64)])
_NOBODY = (-1, 0, 0)  # in place of an utterance that is not there


class Dialogue(RowClasses):
    """Both halves of the decision of ERNIE 1.0's dialogue language model.

    That model hides words too: give `masked_lm` beside it. Segment ids are roles: 0 for who asks,
    1 for who answers.

    Differs from the paper:
        Roles have the network's table of segments, which the paper says plays the same part, and
        no table of their own; speakers alternate, so there are query-response-query and
        query-response, but neither two queries in a row nor two responses. How often an exchange
        is fake it does not say; here half of the time.
    """

    name = "dialogue"
    classes = ("real", "fake")

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """Three utterances that follow each other, two where a dialogue ends, from each query on.

        In half of them one utterance, any, is replaced by one of another document. Where they have
        no room the longest lose their ends.

        Raises:
            ContractViolation: If no document has two utterances, or only one has text.
        """
        room = room_for(self.context.sequence_length, 1 + MOST, least=MOST)
        usable = several_documents(corpus, self.name)
        chance = Chance(rng)
        ends_of = [sentence_ends_of(corpus, int(document)) for document in usable]
        entries: list[tuple[list[tuple[int, int, int]], bool]] = []
        for here, ends in enumerate(ends_of):
            utterances = [(int(usable[here]), int(a), int(b)) for a, b in pairwise(ends)]
            for first in range(0, len(utterances) - 1, 2):
                said = utterances[first : first + MOST]
                fake = chance.uniform() < 0.5
                if fake:
                    place = chance.below(len(said))
                    there = (here + 1 + chance.below(len(usable) - 1)) % len(usable)
                    other = chance.below(len(ends_of[there]) - 1)
                    begin, end = ends_of[there][other : other + 2]
                    said[place] = (int(usable[there]), int(begin), int(end))
                longest = _longest([end - begin for _, begin, end in said], room)
                fitted = [(d, begin, min(end, begin + longest)) for d, begin, end in said]
                entries.append(([*fitted, *[_NOBODY] * (MOST - len(said))], fake))
        if not entries:
            raise ContractViolation(
                "dialogue: needs documents of two utterances or more; the corpus has none. A source"
                " with `sentences: lines` has one in each line"
            )
        made = np.array(entries, EXCHANGE)
        said = made["utterances"]
        lengths = (said["end"] - said["start"] + (said["document"] >= 0)).sum(axis=1) + 1
        padding = 1.0 - float(lengths.mean()) / self.context.sequence_length
        fakes = float(made["fake"].mean())
        return Index(made, lengths, details={"padding": padding, "fake_exchanges": fakes})

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """[CLS] and each utterance with a [SEP] behind it, and whether all belong together."""
        batch = empty_rows(len(entries), self.context)
        for row, utterances in enumerate(entries["utterances"].tolist()):
            said = [utterance for utterance in utterances if utterance != _NOBODY]
            write_row(batch, row, corpus, said, self.context)
            at = 1
            for place, (_, begin, end) in enumerate(said):
                behind = at + end - begin + 1
                batch[keys.SEGMENT_IDS][row, at:behind] = place % 2
                at = behind
        return batch | {self.labels: entries["fake"].astype(np.int32)}


def _longest(lengths: list[int], room: int) -> int:
    """The most tokens any utterance may keep, so that all fit."""
    for place, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - place)
        if length > share:
            return share
        room -= length
    return max(lengths)
