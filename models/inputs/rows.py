"""Rows: one or two texts, cut to the sequence length and padded to a common length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fourstage.errors import ContractViolation, RecipeError, listed
from models import features as keys
from models.compilation import jit_compile
from models.protocols import Batch, Capability, Context, Index, TokenisedRows, Tokenizer

GROUPED = 32  # batches of which the rows are sorted by length together
ORDERED = np.dtype([("row", np.int64), ("swapped", np.bool_)])
_SHOWN = 20  # ids of rows in a message


def row_lengths(sequence_length: int) -> tuple[int, ...]:
    """The lengths to which batches of rows are padded, in order; the last is the sequence length.

    Multiples of 8 up to 64, of 16 up to 128, of 32 up to 256, and so on. Where XLA compiles the
    whole step, once for each length, the quarters of the sequence length only.
    """
    if jit_compile():
        lengths = [-(-sequence_length * part // 32) * 8 for part in (1, 2, 3)]
    else:
        lengths = [8]
        while lengths[-1] < sequence_length:
            lengths.append(lengths[-1] + max(8, (1 << lengths[-1].bit_length()) // 8))
    return tuple(sorted({min(length, sequence_length) for length in (*lengths, sequence_length)}))


def row_index(rows: TokenisedRows, sequence_length: int) -> Index:
    """Every row once, in order, with its length after cutting (`text_index`)."""
    return text_index((rows.texts(i) for i in range(len(rows))), sequence_length)


def text_index(
    rows: Iterable[tuple[np.ndarray, ...]],
    sequence_length: int,
    parts: np.ndarray | None = None,
) -> Index:
    """Every row once, in order, with its length after cutting.

    Args:
        rows: The token ids of each row's texts, or those of its parts.
        sequence_length: T, including [CLS] and one [SEP] per text.
        parts: (rows,) how many parts each row is read in, at least one, each of T tokens at most; a
            row is as long as all of them. None: each row is read as one.

    Returns:
        An index of row numbers; its details include the number of truncated rows.

    Raises:
        ContractViolation: There are no rows.
        RecipeError: The sequence length is below 5.
    """
    full = np.array([1 + sum(len(text) + 1 for text in texts) for texts in rows], np.int64)
    if not len(full):
        raise ContractViolation("the dataset has no rows in this split")
    if sequence_length < 5:
        raise RecipeError(f"sequence_length: {sequence_length}, but a row needs 5 tokens or more")
    cut, lengths = full > sequence_length, np.minimum(full, sequence_length)
    if parts is not None:
        starts = np.cumsum(parts) - parts
        cut, lengths = np.logical_or.reduceat(cut, starts), np.add.reduceat(lengths, starts)
    return Index(
        np.arange(len(lengths), dtype=np.int64),
        lengths,
        by_length=True,
        details={
            "truncated_rows": int(cut.sum()),
            "longest_row": int(full.max()),
        },
    )


def in_orders(index: Index, rows: TokenisedRows, both: bool) -> Index:
    """The index of rows that may be read in both orders.

    Args:
        index: Every row once, in order.
        rows: Tokenised rows.
        both: Whether a pair is read a second time with its second text first.

    Returns:
        An index of `ORDERED` entries.
    """
    orders = [len(rows.texts(i)) if both else 1 for i in range(len(rows))]
    entries = [(i, swapped) for i, many in enumerate(orders) for swapped in range(many)]
    lengths = np.repeat(index.lengths, orders)
    return replace(index, entries=np.array(entries, ORDERED), lengths=lengths)


def labels_of(answers: Sequence[str], label_names: Sequence[str]) -> np.ndarray:
    """(rows,) int32 label ids, -1 for an answer that is not a label."""
    number = {name: i for i, name in enumerate(label_names)}
    return np.array([number.get(answer, -1) for answer in answers], np.int32)


def check_answers(head: str, rows: TokenisedRows, right: Sequence[bool], expected: str) -> None:
    """Check the answers that a head learns from; rows without an answer are not learnt from.

    Args:
        head: Name of the head.
        rows: The training rows.
        right: (rows,) whether the answer is one that the head can learn.
        expected: What such an answer is, with its article.

    Raises:
        ContractViolation: Some are not, or no row has an answer.
    """
    if not any(rows.answers):
        raise ContractViolation(
            f"head.{head}: expected {expected} as answer, got no answer in any of the {len(rows):,}"
            " training rows; look at the answers of the train split"
        )
    fits = [good or not answer for good, answer in zip(right, rows.answers, strict=True)]
    check_rows(head, rows, fits, f"{expected} as answer")


def check_rows(head: str, rows: TokenisedRows, right: Sequence[bool], expected: str) -> None:
    """Check that a head can read rows.

    Args:
        head: Name of the head.
        rows: The rows.
        right: (rows,) whether it can.
        expected: What a row must have.

    Raises:
        ContractViolation: It cannot read some. The message names the rows and quotes no text.
    """
    wrong = [row for row, fits in zip(rows.ids, right, strict=True) if not fits]
    if wrong:
        raise ContractViolation(
            f"head.{head}: expected {expected} in each row, got something else in {len(wrong):,} of"
            f" {len(rows):,}: {listed(wrong, _SHOWN)}; correct the dataset, or choose another head"
        )


def framed_rows(
    rows: TokenisedRows,
    entries: np.ndarray,
    context: Context,
    swapped: np.ndarray | None = None,
) -> Batch:
    """Rows [CLS] text [SEP] or [CLS] text [SEP] second text [SEP], padded to a common length.

    Of two texts, the longer one is cut first. A text that is too long keeps its beginning, or the
    part around its markers (`window_start`).

    Args:
        rows: Tokenised rows.
        entries: (b,) row numbers.
        context: The stage's constants.
        swapped: (b,) bool: of which rows the second text is read first; None for none.

    Returns:
        As `framed`, and of rows with pictures, for a network that sees, as `seen_regions`; for one
        that reads entities, entity_ids (B, T') int32.
    """
    order = np.ones(len(entries), int) if swapped is None else np.where(swapped, -1, 1)
    read = list(zip(entries.tolist(), order.tolist(), strict=True))
    texts = [rows.texts(row)[::way] for row, way in read]
    batch = framed_texts(texts, context) | seen_regions(rows, entries, context)
    if Capability.ENTITIES in context.network:
        entities = [rows.entities(row)[::way] for row, way in read]
        batch[keys.ENTITY_IDS] = _named(entities, texts, batch, context)
    return batch


def _named(
    entities: Sequence[tuple[np.ndarray, ...]],
    texts: Sequence[tuple[np.ndarray, ...]],
    batch: Batch,
    context: Context,
) -> np.ndarray:
    """The entities named in framed rows, (B, T') int32, 0 for none."""
    found = np.zeros_like(batch[keys.TOKEN_IDS])
    for row, (every, given) in enumerate(zip(entities, texts, strict=True)):
        at = 1
        kept = _kept(given, context.sequence_length, context.marks)
        for named, own in zip(every, kept, strict=True):
            part = named[own]
            found[row, at : at + len(part)] = part
            at += own.stop - own.start + 1
    return found


def seen_regions(
    rows: TokenisedRows, entries: Sequence[int] | np.ndarray, context: Context
) -> Batch:
    """The regions of rows' pictures, padded to the most that a row of the dataset has.

    Args:
        rows: Tokenised rows.
        entries: (b,) row numbers.
        context: The stage's constants; a network without the capability ``regions`` sees nothing.

    Returns:
        region_features (b, O, E), region_boxes (b, O, 4) float32 and region_mask (b, O) int32, and
        where a detector told classes detected_classes (b, O, 2) int32 and detected_confidences
        (b, O, 2) float32; or nothing.
    """
    if Capability.REGIONS not in context.network or not rows.most_regions:
        return {}
    found = [rows.regions(int(row)) for row in entries]
    width = max(features.shape[1] for _, features in found)
    shape = len(found), rows.most_regions
    features = np.zeros((*shape, width), np.float32)
    boxes, mask = np.zeros((*shape, 4), np.float32), np.zeros(shape, np.int32)
    for row, (own_boxes, own) in enumerate(found):
        if not len(own):
            continue
        features[row, : len(own)], boxes[row, : len(own)] = own, own_boxes
        mask[row, : len(own)] = 1
    seen = {keys.REGION_FEATURES: features, keys.REGION_BOXES: boxes, keys.REGION_MASK: mask}
    return seen | (_detected(rows, entries, rows.most_regions) if rows.has_classes else {})


def _detected(rows: TokenisedRows, entries: Sequence[int] | np.ndarray, most: int) -> Batch:
    """What a detector tells of rows' regions, as `seen_regions`; confidence 0 for nothing."""
    shape = len(entries), most, 2
    classes, confidences = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    for row, entry in enumerate(entries):
        told, sure = rows.classes(int(entry))
        classes[row, : len(told)], confidences[row, : len(told)] = told, sure
    return {keys.DETECTED_CLASSES: classes, keys.DETECTED_CONFIDENCES: confidences}


def padded_regions(part: Batch, count: int, most: int, width: int, has_classes: bool) -> Batch:
    """The regions of a part of a batch, as wide as those of other parts; of text alone, none.

    Args:
        part: Rows with the keys of `seen_regions`, or without.
        count: Number of the rows.
        most: O, regions of the batch; 0 to change nothing.
        width: E, numbers of each.
        has_classes: Whether a detector told classes of any part's regions.

    Returns:
        As `seen_regions`.
    """
    if not most:
        return {}
    made: Batch = {
        keys.REGION_FEATURES: np.zeros((count, most, width), np.float32),
        keys.REGION_BOXES: np.zeros((count, most, 4), np.float32),
        keys.REGION_MASK: np.zeros((count, most), np.int32),
    }
    if has_classes:
        made[keys.DETECTED_CLASSES] = np.zeros((count, most, 2), np.int32)
        made[keys.DETECTED_CONFIDENCES] = np.zeros((count, most, 2), np.float32)
    for key, value in made.items():
        if key in part:
            value[:, : part[key].shape[1]] = part[key]
    return made


def as_wide(parts: Sequence[Batch], pad_id: int) -> list[Batch]:
    """The parts of a batch, padded to the width of the widest.

    Args:
        parts: Rows with the same keys; what is not one number a row is (b, T).
        pad_id: What fills token ids; masks and weights are filled with 0.
    """
    wide = [dict(part) for part in parts]
    for key, value in parts[0].items():
        if value.ndim == 1:
            continue
        width = max(part[key].shape[1] for part in parts)
        fill = pad_id if key in keys.TOKENS else 0
        for part in wide:
            if short := width - part[key].shape[1]:
                part[key] = np.pad(part[key], [(0, 0), (0, short)], constant_values=fill)
    return wide


def framed_texts(rows: Sequence[tuple[np.ndarray, ...]], context: Context) -> Batch:
    """As `framed_rows`, of rows given as one or two texts each."""
    length, marks = context.sequence_length, context.marks
    kept = [
        tuple(ids[own] for ids, own in zip(texts, _kept(texts, length, marks), strict=True))
        for texts in rows
    ]
    return framed(kept, context)


def framed(rows: Sequence[tuple[np.ndarray, ...]], context: Context) -> Batch:
    """The token ids of rows between special tokens, padded to a common length.

    Args:
        rows: One or two texts each, which fit in the sequence length.
        context: The stage's constants.

    Returns:
        token_ids, segment_ids, padding_mask (B, T') int32; T' is the shortest of `row_lengths` that
        fits the longest row.
    """
    tokenizer = context.tokenizer
    longest = max(1 + sum(len(text) + 1 for text in texts) for texts in rows)
    width = next(length for length in row_lengths(context.sequence_length) if length >= longest)
    ids = np.full((len(rows), width), tokenizer.pad_id, np.int32)
    segments, mask = np.zeros_like(ids), np.zeros_like(ids)
    for row, texts in enumerate(rows):
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
    """The batches of one pass, each of rows of similar length.

    Args:
        lengths: (rows,) tokens per row.
        batch_size: B.
        rng: Random generator. Rows are sorted by length within random groups of `GROUPED` batches,
            then the batches are shuffled. None sorts all rows and keeps that order, for evaluation.

    Returns:
        (batches, B) int64 row numbers; -1 fills up the batch of the last rows.
    """
    num_batches = -(-len(lengths) // batch_size)
    if rng is None:
        order = np.argsort(lengths, kind="stable")
    else:
        mixed = rng.permutation(len(lengths))
        group = np.arange(len(lengths)) // (GROUPED * batch_size)
        order = mixed[np.lexsort((lengths[mixed], group))]
    plan = np.full(num_batches * batch_size, -1, np.int64)
    plan[: len(order)] = order
    plan = plan.reshape(num_batches, batch_size)
    return plan if rng is None else plan[rng.permutation(num_batches)]


def mark_ids(tokenizer: Tokenizer, markings: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Token ids of marker strings, both as at the beginning of a text and as after a space."""
    spelled = tokenizer.encode([form for each in markings for form in (each, f" {each}")])
    return tuple(dict.fromkeys(tuple(ids.tolist()) for ids in spelled if len(ids)))


def window_start(ids: np.ndarray, room: int, marks: Sequence[Sequence[int]]) -> int:
    """First token to keep of a text that is too long.

    The beginning of the text is kept if it contains all markers. Otherwise the markers are centred;
    if they are too far apart to fit, the kept part starts at the first one.

    Args:
        ids: (tokens,) token ids, more than `room`.
        room: Number of tokens to keep.
        marks: Token ids of each marker.
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


def _kept(
    texts: Sequence[np.ndarray], sequence_length: int, marks: Sequence[Sequence[int]]
) -> tuple[slice, ...]:
    """What is kept of one or two texts, so that they fit in a row; the longer is cut first."""
    if len(texts) == 1:
        return (_part(texts[0], sequence_length - 2, marks),)
    first, second = texts
    room = sequence_length - 3
    surplus = max(len(first) + len(second) - room, 0)
    from_longer = min(surplus, abs(len(first) - len(second)))
    rest = surplus - from_longer
    longer_first = len(first) > len(second)
    cut_first = (from_longer if longer_first else 0) + rest // 2
    cut_second = surplus - cut_first
    return (
        _part(first, len(first) - cut_first, marks),
        _part(second, len(second) - cut_second, marks),
    )


def _part(ids: np.ndarray, room: int, marks: Sequence[Sequence[int]]) -> slice:
    if len(ids) <= room:
        return slice(0, len(ids))
    start = window_start(ids, room, marks)
    return slice(start, start + room)
