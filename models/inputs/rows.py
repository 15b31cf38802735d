"""Rows: one text or two, cut to what the network can read, padded to a common length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.protocols import Batch, Context, Index, TokenisedRows, Tokenizer


def row_lengths(sequence_length: int) -> tuple[int, ...]:
    """The lengths a batch of rows may be padded to: quarters of the sequence length.

    Few, because a backend compiles the step once for each.
    """
    quarters = {min(-(-sequence_length * part // 32) * 8, sequence_length) for part in (1, 2, 3)}
    return tuple(sorted(quarters | {sequence_length}))


def row_index(rows: TokenisedRows, sequence_length: int) -> Index:
    """Every row once, in order, with the length it will have.

    Args:
        rows: Tokenised rows.
        sequence_length: T, with [CLS] and one [SEP] a text.

    Returns:
        Entries are numbers of rows; the details count rows that lose tokens.

    Raises:
        ContractViolation: If there are no rows.
    """
    if not len(rows):
        raise ContractViolation("the dataset has no rows in this split")
    if sequence_length < 5:
        raise RecipeError(f"sequence_length: {sequence_length}, but a row needs 5 tokens or more")
    full = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        full[i] = 1 + sum(len(text) + 1 for text in rows.texts(i))
    return Index(
        np.arange(len(rows), dtype=np.int64),
        np.minimum(full, sequence_length),
        by_length=True,
        details={
            "truncated_rows": int((full > sequence_length).sum()),
            "longest_row": int(full.max()),
        },
    )


def labels_of(answers: Sequence[str], label_names: Sequence[str]) -> np.ndarray:
    """(rows,) int32 label ids, -1 for an answer that is none of the labels."""
    number = {name: i for i, name in enumerate(label_names)}
    return np.array([number.get(answer, -1) for answer in answers], np.int32)


def framed_rows(rows: TokenisedRows, entries: np.ndarray, context: Context) -> Batch:
    """[CLS] text [SEP] or [CLS] text [SEP] second text [SEP], padded to the batch's bucket.

    Of two texts the longer one is cut first. Too long a text keeps its head, or the part round its
    marks (`window_start`).

    Returns:
        token_ids, segment_ids, padding_mask (B, T') int32; T' is the shortest of `row_lengths` that
        holds the longest row.
    """
    tokenizer = context.tokenizer
    length, marks = context.sequence_length, context.marks
    cut = [_cut(rows.texts(int(row)), length, marks) for row in entries]
    longest = max(1 + sum(len(text) + 1 for text in texts) for texts in cut)
    width = next(length for length in row_lengths(context.sequence_length) if length >= longest)
    ids = np.full((len(cut), width), tokenizer.pad_id, np.int32)
    segments, mask = np.zeros_like(ids), np.zeros_like(ids)
    for row, texts in enumerate(cut):
        end = 0
        ids[row, 0] = tokenizer.cls_id
        for number, text in enumerate(texts):
            start, end = end + 1, end + 1 + len(text)
            ids[row, start:end] = text
            ids[row, end] = tokenizer.sep_id
            segments[row, start : end + 1] = number
        mask[row, : end + 1] = 1
    return {keys.TOKEN_IDS: ids, keys.SEGMENT_IDS: segments, keys.PADDING_MASK: mask}


def length_plan(
    lengths: np.ndarray, batch_size: int, rng: np.random.Generator | None
) -> np.ndarray:
    """Rows of like length side by side: one pass as batches.

    Args:
        lengths: (rows,) tokens of each row.
        batch_size: B.
        rng: Mixes rows and batches: rows are sorted within random groups of 32 batches, then the
            batches are shuffled. None sorts the whole and keeps that order, for evaluation.

    Returns:
        (batches, B) int64 row numbers, -1 where the last batch has none left.
    """
    num_batches = -(-len(lengths) // batch_size)
    if rng is None:
        order = np.argsort(lengths, kind="stable")
    else:
        mixed = rng.permutation(len(lengths))
        group = np.arange(len(lengths)) // (32 * batch_size)
        order = mixed[np.lexsort((lengths[mixed], group))]
    plan = np.full(num_batches * batch_size, -1, np.int64)
    plan[: len(order)] = order
    plan = plan.reshape(num_batches, batch_size)
    return plan if rng is None else plan[rng.permutation(num_batches)]


def mark_ids(tokenizer: Tokenizer, markings: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Token ids of markings as they stand in a text: at its beginning, and behind a blank."""
    spelled = tokenizer.encode([form for each in markings for form in (each, f" {each}")])
    return tuple(dict.fromkeys(tuple(ids.tolist()) for ids in spelled if len(ids)))


def window_start(ids: np.ndarray, room: int, marks: Sequence[Sequence[int]]) -> int:
    """Where the part of a too long text begins that is kept.

    At the text's beginning, if all its marks lie in what is kept then; else so that the marks stand
    in the middle; if they lie too far apart, at the first one.

    Args:
        ids: (tokens,) more than `room`.
        room: Tokens that are kept.
        marks: Token ids of each mark.
    """
    places = [
        (place, place + len(mark))
        for mark in marks
        for place in range(len(ids) - len(mark) + 1)
        if np.array_equal(ids[place : place + len(mark)], mark)
    ]
    if not places:
        return 0
    first, end = min(start for start, _ in places), max(end for _, end in places)
    if end <= room:
        return 0
    return min(first if end - first > room else (first + end - room) // 2, len(ids) - room)


def _kept(ids: np.ndarray, room: int, marks: Sequence[Sequence[int]]) -> np.ndarray:
    if len(ids) <= room:
        return ids
    start = window_start(ids, room, marks)
    return ids[start : start + room]


def _cut(
    texts: Sequence[np.ndarray], sequence_length: int, marks: Sequence[Sequence[int]]
) -> tuple[np.ndarray, ...]:
    """One text or two, without what does not fit."""
    if len(texts) == 1:
        return (_kept(texts[0], sequence_length - 2, marks),)
    first, second = texts
    room = sequence_length - 3
    surplus = max(len(first) + len(second) - room, 0)
    from_longer = min(surplus, abs(len(first) - len(second)))
    rest = surplus - from_longer
    longer_first = len(first) > len(second)
    cut_first = (from_longer if longer_first else 0) + rest // 2
    cut_second = surplus - cut_first
    return (
        _kept(first, len(first) - cut_first, marks),
        _kept(second, len(second) - cut_second, marks),
    )
