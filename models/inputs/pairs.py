"""Pairs of segments, packed from sentences and written as rows."""

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

SHORT_SHARE = 0.1  # share of pairs with a shorter target length, so that short texts occur too
PAIR = np.dtype([("first", SEGMENT), ("second", SEGMENT), ("relation", np.int64)])


class Relation(IntEnum):
    """Relation of a pair's second segment to the first."""

    NEXT = 0
    RANDOM = 1  # from another document
    PREVIOUS = 2
    APART = 3  # from the same document, at least one sentence away


def pack(
    corpus: TokenisedCorpus,
    usable: np.ndarray,
    sequence_length: int,
    rng: np.random.Generator,
    relation: Callable[[int, Chance], Relation],
    *,
    alone: bool = True,
) -> np.ndarray:
    """Pack pairs of segments from sentences, cut to the length of a row, as in BERT.

    Sentences of a document are collected until they reach the target length. A random cut between
    two of them ends segment A. Segment B is the rest, or text from elsewhere; the unused rest then
    starts the next pair. A pair that is too long loses tokens from the longer segment, at its front
    or back by chance.

    Differs from the paper:
        The shorter target length (one pair in ten) is drawn per pair. Google's code draws it once
        per document, so that in a corpus of few long documents all pairs or none would be short.

    Args:
        corpus: Tokenised documents.
        usable: Numbers of the documents with text.
        sequence_length: T.
        rng: Random generator.
        relation: Draws the pair's relation, given the number of collected sentences. Where `APART`
            is impossible, the pair becomes `RANDOM`.
        alone: Whether a single collected sentence may be segment A; `relation` must not return
            `NEXT` for it. If False, the sentence is joined by a neighbour, or skipped if it is the
            only one of its document. A document's last sentence goes without its neighbour where
            segment B is text from elsewhere.

    Returns:
        (pairs,) of `PAIR`.

    Reference:
        ``create_pretraining_data.py`` of google-research/bert; arXiv 1810.04805, 3.1 task 2.
    """
    room = room_for(sequence_length, 3, least=2)
    # Drawn in blocks: a generator call per number would cost more than all the rest.
    chance = Chance(rng)
    sentence_ends = [sentence_ends_of(corpus, int(document)) for document in usable]
    entries: list[tuple[tuple[int, int, int], tuple[int, int, int], int]] = []
    for here, ends in enumerate(sentence_ends):
        document = int(usable[here])
        first, num_sentences = 0, len(ends) - 1
        while first < num_sentences:
            target = room if chance.uniform() >= SHORT_SHARE else 2 + chance.below(room - 1)
            # Collect sentences [first, last): at least one, and enough to reach the target.
            last = min(int(np.searchsorted(ends, ends[first] + target, side="left")), num_sentences)
            last = max(last, first + 1)
            back = False  # whether the neighbour before joins a last sentence
            if last == first + 1 and not alone:
                if last < num_sentences:
                    last += 1
                elif first:
                    first, back = first - 1, True
                else:
                    break
            collected = last - first
            cut = first + (1 + chance.below(collected - 1) if collected > 1 else 1)
            how = relation(collected, chance)
            if back and how in (Relation.RANDOM, Relation.APART):
                # With text from elsewhere it needs no neighbour, and the document ends with it.
                first, cut = cut, last
            start, middle, end = int(ends[first]), int(ends[cut]), int(ends[last])
            # Number of sentences before and after A, without A's direct neighbours.
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
    return cut_to_room(np.array(entries, PAIR), room, rng)


def lengths_of(pairs: np.ndarray) -> np.ndarray:
    """Tokens in each pair's row, (pairs,), including the three special tokens."""
    first, second = pairs["first"], pairs["second"]
    return first["end"] - first["start"] + second["end"] - second["start"] + 3


def rows_of(corpus: TokenisedCorpus, pairs: np.ndarray, context: Context) -> Batch:
    """Rows [CLS] A [SEP] B [SEP]; B and its [SEP] are segment 1.

    Args:
        corpus: Tokenised documents.
        pairs: (B,) with the fields ``first`` and ``second`` of `PAIR`.
        context: The stage's constants.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint32.
    """
    batch = empty_rows(len(pairs), context)
    for row, (first, second) in enumerate(pairs[["first", "second"]].tolist()):
        end = write_row(batch, row, corpus, [first, second], context)
        batch[keys.SEGMENT_IDS][row, 2 + first[2] - first[1] : end] = 1
    return batch


def cut_to_room(entries: np.ndarray, room: int, rng: np.random.Generator) -> np.ndarray:
    """Remove tokens from the longer segment, each at front or back by chance, until a pair fits.

    Args:
        entries: (pairs,) with the fields ``first`` and ``second`` of `PAIR`.
        room: Tokens that both may have together.
        rng: Random generator.

    Closed form of removing one token at a time: the longer segment shrinks to the other's length,
    then both lose tokens in turn, B first. With 9 and 4 tokens and room for 7, A shrinks to 4, then
    B to 3.
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
