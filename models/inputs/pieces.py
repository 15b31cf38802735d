"""Pieces of single documents: stretches side by side, and paragraphs whose pieces are shuffled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fourstage.errors import ContractViolation
from models.inputs.segments import Chance, empty_rows, room_for, sentence_ends_of, write_row
from models.protocols import Batch, Context, Index, TokenisedCorpus


def stretch_index(corpus: TokenisedCorpus, sequence_length: int) -> Index:
    """Stretches of single documents, each document cut into as few equal ones as fit.

    Two at least, so that every stretch has a rest of the document beside it; a document of one
    token is passed over.

    Returns:
        Entries (document, first, end), tokens in the document.

    Raises:
        ContractViolation: If no document has two tokens.
    """
    room = room_for(sequence_length, 2)
    usable = np.flatnonzero(corpus.lengths > 1)
    if not len(usable):
        raise ContractViolation(
            "token_document: needs documents of two tokens or more; the corpus has none"
        )
    lengths = corpus.lengths[usable].astype(np.int64)
    counts = np.maximum(2, -(-lengths // room))
    of = np.repeat(np.arange(len(usable)), counts)  # which document a stretch is of …
    number = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]  # … and its number there
    first, end = (n * lengths[of] // counts[of] for n in (number, number + 1))
    rows = end - first + 2
    padding = 1.0 - float(rows.mean()) / sequence_length
    entries = np.stack([usable[of], first, end], axis=1)
    return Index(entries, rows, details={"padding": padding})


def stretches(corpus: TokenisedCorpus, entries: np.ndarray, context: Context) -> Batch:
    """The rows of `stretch_index`: [CLS] stretch [SEP], all of segment 0.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint8.
    """
    batch = empty_rows(len(entries), context)
    for row, (document, first, end) in enumerate(entries.tolist()):
        write_row(batch, row, corpus, [(document, first, end)], context)
    return batch


def reordered_index(
    corpus: TokenisedCorpus,
    sequence_length: int,
    orders: Sequence[tuple[int, ...]],
    rng: np.random.Generator,
) -> Index:
    """ERNIE 2.0's paragraphs: sentences that fill a row, cut into pieces and shuffled.

    Each number of pieces that a paragraph has sentences for is as likely as another, and so are
    the places where it is cut and the orders. A sentence longer than a row is cut at the end.

    Args:
        corpus: Tokenised documents with sentence lengths.
        sequence_length: T; there is room for [CLS] and a [SEP] behind each piece.
        orders: Every order of 1 … m pieces, few pieces first.
        rng: Source of chance.

    Returns:
        Entries (document, first, m ends of pieces, number of the order); a paragraph of fewer
        pieces ends several times.

    Raises:
        ContractViolation: If no paragraph has two sentences.

    Reference:
        Sun et al. 2020, arXiv 1907.12412, 4.2.2.
    """
    most = len(orders[-1])
    room = room_for(sequence_length, 1 + most, least=most)
    first_order = [next(i for i, o in enumerate(orders) if len(o) == n + 1) for n in range(most)]
    first_order.append(len(orders))
    chance = Chance(rng)
    entries: list[list[int]] = []
    several = False
    for document in np.flatnonzero(corpus.lengths > 0).tolist():
        ends = sentence_ends_of(corpus, document)
        first = 0
        while first < len(ends) - 1:
            last = int(np.searchsorted(ends, ends[first] + room, side="right")) - 1
            last = max(last, first + 1)
            several = several or last > first + 1
            count = 1 + chance.below(min(most, last - first))
            cuts = chance.sample(last - first - 1, count - 1)
            end = min(int(ends[last]), int(ends[first]) + room)
            pieces = [*(int(ends[first + 1 + cut]) for cut in cuts), *[end] * (most - count + 1)]
            order = first_order[count - 1]
            order += chance.below(first_order[count] - order)
            entries.append([document, int(ends[first]), *pieces, order])
            first = last
    if not several:
        raise ContractViolation(
            f"sentence_reordering: nowhere in the corpus do two sentences in a row fit in {room} "
            "tokens, so that they could change places; lengthen the sequences or add text"
        )
    made = np.array(entries, np.int64)
    pieces = np.array([len(order) for order in orders])[made[:, -1]]
    lengths = made[:, -2] - made[:, 1] + 1 + pieces
    padding = 1.0 - float(lengths.mean()) / sequence_length
    whole = float((made[:, -1] == 0).mean())
    return Index(made, lengths, details={"padding": padding, "in_one_piece": whole})


def reordered(
    corpus: TokenisedCorpus,
    entries: np.ndarray,
    orders: Sequence[tuple[int, ...]],
    context: Context,
    labels: str,
) -> Batch:
    """The rows of `reordered_index`: [CLS] and each piece with a [SEP] behind it, of segment 0.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint8; under the key
        `labels` the number of the order, (B,) int32.
    """
    batch = empty_rows(len(entries), context)
    for row, (document, *borders, order) in enumerate(entries.tolist()):
        pieces = [(document, borders[i], borders[i + 1]) for i in orders[order]]
        write_row(batch, row, corpus, pieces, context)
    batch[labels] = entries[:, -1].astype(np.int32)
    return batch
