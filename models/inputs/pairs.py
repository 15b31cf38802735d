"""Pairs of segments: packed from sentences, and written as rows."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from models import features as keys
from models.inputs.segments import (
    SEGMENT,
    Chance,
    empty_rows,
    room_for,
    sentence_ends_of,
    write_row,
)
from models.protocols import Batch, Context, TokenisedCorpus

SHORT_SHARE = 0.1  # of pairs are packed to a shorter target, so that short texts are seen too
PAIR = np.dtype([("first", SEGMENT), ("second", SEGMENT), ("relation", np.int64)])


class Relation(IntEnum):
    """How the second segment of a pair stands to the first."""

    NEXT = 0
    RANDOM = 1  # from another document
    PREVIOUS = 2
    APART = 3  # from the same document, with a sentence or more between the two


def pack(
    corpus: TokenisedCorpus,
    usable: np.ndarray,
    sequence_length: int,
    rng: np.random.Generator,
    relation: Callable[[int, Chance], Relation],
    *,
    alone: bool = True,
) -> np.ndarray:
    """Pairs of segments, packed from sentences and cut to the room of a row, as BERT's.

    Sentences of a document are collected until they fill the target; a random cut makes segment A;
    segment B is the rest, or a stretch from elsewhere, and then the sentences left over are used
    again. Over-long pairs lose tokens from the longer side, front or back by chance.

    Differs from the paper:
        The shorter target (one pair in ten) is drawn for each pair; Google's code draws it once a
        document, which makes a corpus of few long documents all short or not at all.

    Args:
        corpus: Tokenised documents.
        usable: Those with text.
        sequence_length: T.
        rng: Source of chance.
        relation: Draws one from the number of sentences collected; what cannot be `APART` becomes
            `RANDOM`.
        alone: Whether a single sentence may be segment A (`relation` may not answer `NEXT` then);
            else it is joined by the one before it, or passed over where there is none.

    Returns:
        (pairs,) of `PAIR`.

    Reference:
        ``create_pretraining_data.py`` of google-research/bert; arXiv 1810.04805, 3.1 task 2.
    """
    room = room_for(sequence_length, 3, least=2)
    # Chance is drawn in blocks: a call for each number would cost more than all the rest.
    chance = Chance(rng)
    sentence_ends = [sentence_ends_of(corpus, int(document)) for document in usable]
    entries: list[tuple[tuple[int, int, int], tuple[int, int, int], int]] = []
    for here, ends in enumerate(sentence_ends):
        document = int(usable[here])
        first, num_sentences = 0, len(ends) - 1
        while first < num_sentences:
            target = room if chance.uniform() >= SHORT_SHARE else 2 + chance.below(room - 1)
            # One sentence at least, then as many as it takes to reach the target.
            last = min(int(np.searchsorted(ends, ends[first] + target, side="left")), num_sentences)
            last = max(last, first + 1)
            if last == first + 1 and not alone:
                if last < num_sentences:
                    last += 1
                elif first:
                    first -= 1
                else:
                    break
            collected = last - first
            cut = first + (1 + chance.below(collected - 1) if collected > 1 else 1)
            start, middle, end = int(ends[first]), int(ends[cut]), int(ends[last])
            how = relation(collected, chance)
            # Sentences of the document before and behind A, those right beside it left out.
            before, behind = max(first - 1, 0), max(num_sentences - cut - 1, 0)
            if how == Relation.APART and not before + behind:
                how = Relation.RANDOM
            if how in (Relation.RANDOM, Relation.APART):
                there, limit = here, num_sentences
                if how == Relation.RANDOM:
                    there = (here + 1 + chance.below(len(usable) - 1)) % len(usable)
                    limit = len(sentence_ends[there]) - 1
                    sentence = chance.below(limit)
                else:
                    sentence = chance.below(before + behind)
                    if sentence < before:
                        limit = before
                    else:
                        sentence += cut + 1 - before
                other = sentence_ends[there]
                other_first = int(other[sentence])
                wanted = max(1, target - (middle - start))
                reached = int(np.searchsorted(other, other_first + wanted, side="left"))
                other_end = int(other[min(reached, limit)])
                elsewhere = (int(usable[there]), other_first, other_end)
                entries.append(((document, start, middle), elsewhere, how))
                first = cut
                continue
            one, two = (document, start, middle), (document, middle, end)
            entries.append((one, two, how) if how == Relation.NEXT else (two, one, how))
            first = last
    return _cut_to_room(np.array(entries, PAIR), room, rng)


def lengths_of(pairs: np.ndarray) -> np.ndarray:
    """Tokens of each pair's row, (pairs,), the three special ones counted."""
    first, second = pairs["first"], pairs["second"]
    return first["end"] - first["start"] + second["end"] - second["start"] + 3


def rows_of(corpus: TokenisedCorpus, pairs: np.ndarray, context: Context) -> Batch:
    """[CLS] A [SEP] B [SEP], B and its [SEP] of segment 1.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint8.
    """
    batch = empty_rows(len(pairs), context)
    for row, (first, second, _) in enumerate(pairs.tolist()):
        end = write_row(batch, row, corpus, [first, second], context)
        batch[keys.SEGMENT_IDS][row, 2 + first[2] - first[1] : end] = 1
    return batch


def _cut_to_room(entries: np.ndarray, room: int, rng: np.random.Generator) -> np.ndarray:
    """Take tokens from the longer side, each from front or back by chance, until a pair fits.

    The closed form of cutting one by one: the longer side shrinks to the other's length, then both
    in turn, B first.
    """
    a, b = (entries[side]["end"] - entries[side]["start"] for side in ("first", "second"))
    surplus = np.maximum(a + b - room, 0)
    from_longer = np.minimum(surplus, np.abs(a - b))
    rest = surplus - from_longer
    cut_a = np.where(a > b, from_longer, 0) + rest // 2
    cut_b = np.where(a > b, 0, from_longer) + (rest + 1) // 2
    result = entries.copy()
    for cut, side in ((cut_a, "first"), (cut_b, "second")):
        front = rng.binomial(cut, 0.5)
        result[side]["start"] += front
        result[side]["end"] -= cut - front
    return result
