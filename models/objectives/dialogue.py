"""Dialogue: is an exchange of utterances real, or is one of them from another document?

A dialogue is a document whose sentences are the utterances of two alternating speakers. A source
with ``sentences: lines`` has one utterance per line.

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
_NOBODY = (-1, 0, 0)  # in place of a missing utterance


class Dialogue(RowClasses):
    """Both halves of the real-or-fake prediction of ERNIE 1.0's dialogue language model.

    For the full dialogue language model, train it together with `masked_lm`. Segment ids are
    speakers: 0 for the query, 1 for the response.

    Differs from the paper:
        Speakers use the network's segment embedding instead of a table of their own; the paper says
        that both play the same role. Speakers alternate, so exchanges are query-response-query or
        query-response. The paper does not give the share of fake exchanges; here it is one half.
    """

    name = "dialogue"
    classes = ("real", "fake")

    def index(self, corpus: TokenisedCorpus, rng: np.random.Generator) -> Index:
        """One exchange per query: three consecutive utterances, or two at the end of a dialogue.

        In half of the exchanges, a random utterance is replaced by one from another document. In an
        exchange that is too long, the longest utterances are cut at their ends.

        Raises:
            ContractViolation: No document has two utterances, or only one document has text.
        """
        room = room_for(self.context.sequence_length, 1 + MOST, least=MOST)
        usable = several_documents(corpus, self.name)
        chance = Chance(rng)
        ends_of = [sentence_ends_of(corpus, int(document)) for document in usable]
        entries: list[tuple[list[tuple[int, int, int]], bool]] = []
        for here, ends in enumerate(ends_of):
            utterances = [(int(usable[here]), int(a), int(b)) for a, b in pairwise(ends)]
            for first in range(0, len(utterances) - 1, 2):
                exchange = utterances[first : first + MOST]
                fake = chance.uniform() < 0.5
                if fake:
                    place = chance.below(len(exchange))
                    there = (here + 1 + chance.below(len(usable) - 1)) % len(usable)
                    other = chance.below(len(ends_of[there]) - 1)
                    begin, end = ends_of[there][other : other + 2]
                    exchange[place] = (int(usable[there]), int(begin), int(end))
                longest = _longest([end - begin for _, begin, end in exchange], room)
                fitted = [(d, begin, min(end, begin + longest)) for d, begin, end in exchange]
                entries.append(([*fitted, *[_NOBODY] * (MOST - len(exchange))], fake))
        if not entries:
            raise ContractViolation(
                "dialogue: needs documents of two utterances or more; the corpus has none. A source"
                " with `sentences: lines` has one in each line"
            )
        made = np.array(entries, EXCHANGE)
        cut = made["utterances"]
        lengths = (cut["end"] - cut["start"] + (cut["document"] >= 0)).sum(axis=1) + 1
        padding = 1.0 - float(lengths.mean()) / self.context.sequence_length
        fakes = float(made["fake"].mean())
        return Index(made, lengths, details={"padding": padding, "fake_exchanges": fakes})

    def segments(
        self, corpus: TokenisedCorpus, entries: np.ndarray, rng: np.random.Generator
    ) -> Batch:
        """Rows [CLS] utterance [SEP] utterance [SEP] …, with labels: 0 real, 1 fake."""
        batch = empty_rows(len(entries), self.context)
        for row, utterances in enumerate(entries["utterances"].tolist()):
            exchange = [utterance for utterance in utterances if utterance != _NOBODY]
            write_row(batch, row, corpus, exchange, self.context)
            at = 1
            for place, (_, begin, end) in enumerate(exchange):
                next_at = at + end - begin + 1
                batch[keys.SEGMENT_IDS][row, at:next_at] = place % 2
                at = next_at
        return batch | {self.labels: entries["fake"].astype(np.int32)}


def _longest(lengths: list[int], room: int) -> int:
    """The largest cut length with which all utterances fit: lengths 2, 9, 9 and room 14 give 6."""
    for place, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - place)
        if length > share:
            return share
        room -= length
    return max(lengths)
