"""Exchanges: a few utterances of a dialogue in a row, one of them from elsewhere half of the time.

A dialogue is a document whose sentences are its utterances, said by two in turn; a source with
``sentences: lines`` has one in each line.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fourstage.errors import ContractViolation
from models import features as keys
from models.inputs.segments import (
    Chance,
    empty_rows,
    room_for,
    sentence_ends_of,
    several_documents,
    write_row,
)
from models.protocols import Batch, Context, Index, TokenisedCorpus

MOST = 3  # utterances of an exchange: query, response, query
REAL, FAKE = 0, 1
_NOBODY = -1  # in place of the document of an utterance that is not there


def exchange_index(
    corpus: TokenisedCorpus, sequence_length: int, rng: np.random.Generator
) -> Index:
    """Three utterances that follow each other, two where a dialogue ends, from each query on.

    In half of them one utterance, any, is replaced by one of another document. Where they have no
    room the longest lose their ends.

    Args:
        corpus: Tokenised documents whose sentences are utterances.
        sequence_length: T; there is room for [CLS] and a [SEP] behind each utterance.
        rng: Source of chance.

    Returns:
        Entries (document, first, end) of each utterance, -1 for a third that is not there; the
        last column 0 = real, 1 = fake.

    Raises:
        ContractViolation: If no document has two utterances, or only one has text.

    Reference:
        Sun et al. 2019, arXiv 1904.09223, 3.4.
    """
    room = room_for(sequence_length, 1 + MOST, least=MOST)
    usable = several_documents(corpus, "dialogue")
    chance = Chance(rng)
    ends_of = [sentence_ends_of(corpus, int(document)) for document in usable]
    entries: list[list[int]] = []
    for here, ends in enumerate(ends_of):
        utterances = [(int(usable[here]), int(a), int(b)) for a, b in pairwise(ends)]
        for first in range(0, len(utterances) - 1, 2):
            said = utterances[first : first + MOST]
            how = FAKE if chance.uniform() < 0.5 else REAL
            if how == FAKE:
                place = chance.below(len(said))
                there = (here + 1 + chance.below(len(usable) - 1)) % len(usable)
                other = chance.below(len(ends_of[there]) - 1)
                begin, end = ends_of[there][other : other + 2]
                said[place] = (int(usable[there]), int(begin), int(end))
            longest = _longest([end - begin for _, begin, end in said], room)
            fitted = [(d, begin, min(end, begin + longest)) for d, begin, end in said]
            fitted += [(_NOBODY, 0, 0)] * (MOST - len(said))
            entries.append([number for piece in fitted for number in piece] + [how])
    if not entries:
        raise ContractViolation(
            "dialogue: needs documents of two utterances or more; the corpus has none. A source"
            " with `sentences: lines` has one in each line"
        )
    made = np.array(entries, np.int64)
    documents, begins, ends = (made[:, column:-1:3] for column in range(3))
    lengths = (ends - begins + (documents != _NOBODY)).sum(axis=1) + 1
    padding = 1.0 - float(lengths.mean()) / sequence_length
    return Index(
        made, lengths, details={"padding": padding, "fake_exchanges": float(made[:, -1].mean())}
    )


def exchanges(corpus: TokenisedCorpus, entries: np.ndarray, context: Context, labels: str) -> Batch:
    """The rows of `exchange_index`: [CLS] and each utterance with a [SEP] behind it.

    Segment ids are roles: 0 for who asks, 1 for who answers.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint8; under the key
        `labels` the last column of the entries, (B,) int32.
    """
    batch = empty_rows(len(entries), context)
    for row, entry in enumerate(entries[:, :-1].tolist()):
        pieces = [tuple(entry[i : i + 3]) for i in range(0, len(entry), 3) if entry[i] != _NOBODY]
        write_row(batch, row, corpus, pieces, context)
        at = 1
        for place, (_, begin, end) in enumerate(pieces):
            behind = at + end - begin + 1
            batch[keys.SEGMENT_IDS][row, at:behind] = place % 2
            at = behind
    batch[labels] = entries[:, -1].astype(np.int32)
    return batch


def _longest(lengths: list[int], room: int) -> int:
    """The most tokens any utterance may keep, so that all fit."""
    for place, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - place)
        if length > share:
            return share
        room -= length
    return max(lengths)
