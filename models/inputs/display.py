"""Examples in readable form: tokens in columns, with the inputs and targets of each below it.

    clean    [CLS] the  cat    sat
    units          wpe  wpe    w
    seen     [CLS] the  [MASK] sat
    segment  0     0    0      0
    mask                cat

Widths are terminal columns; a Chinese character takes two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from models import features as keys
from models.modes import Mode, seen_in
from models.protocols import Batch, Tokenizer

WIDTH = 100  # columns per line
# Targets that are tokens: of slots with positions; `next` stands at the position that predicts it.
_SLOTS = ("mask", "chosen", "shuffled", "span", "query", "next")
_OF_REGIONS = "region"
_WRITTEN = "target"  # has tokens of its own, beside those of the row
_SEEN = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})  # byte-level tokens contain whitespace
_UNITS = {keys.WORD: "w", keys.PHRASE: "p", keys.ENTITY: "e", keys.CAPITALISED: "C"}


def display_width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def shown(
    clean: Batch,
    batch: Batch,
    row: int,
    tokenizer: Tokenizer,
    meanings: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    """One example of a batch as text, in lines of at most `WIDTH` columns unless a token is wider.

    A row with choices is shown as one pair per choice.

    Args:
        clean: The rows from the segment chooser, with unit starts.
        batch: The same rows after all objectives.
        row: Number of the row.
        tokenizer: The recipe's tokenizer.
        meanings: {batch key of labels: each row's label in words}.
    """
    if clean[keys.TOKEN_IDS].ndim == 3:
        pairs = {key: value[row] for key, value in clean.items() if value.ndim == 3}
        choices = range(int(pairs[keys.PADDING_MASK][:, 0].sum()))
        blocks = [shown(pairs, pairs, choice, tokenizer) for choice in choices]
        return "\n".join([*blocks, *_labels(batch, row, meanings)])

    text = partial(spelled, tokenizer)
    length = int(clean[keys.PADDING_MASK][row].sum())
    lines = {"clean": [text(i) for i in clean[keys.TOKEN_IDS][row, :length]]}
    if keys.UNIT_STARTS in clean:
        kinds = clean[keys.UNIT_STARTS][row, :length]
        lines["units"] = ["".join(n for kind, n in _UNITS.items() if at & kind) for at in kinds]
    # Beside a target that an objective makes, what is seen may be longer or shorter, unless the
    # target has positions in it.
    placed = keys.TARGET_POSITIONS in batch
    rewritten = keys.TARGET_IDS in batch and keys.TARGET_IDS not in clean and not placed
    changed = [k for k in (keys.TOKEN_IDS, "generator_token_ids") if k in batch]
    for key in changed if not rewritten else ():
        seen = [text(i) for i in batch[key][row, :length]]
        name = "seen" if key == keys.TOKEN_IDS else "generator"
        if name == "generator" or seen != lines["clean"]:
            lines[name] = seen
    if keys.ATTENDED_MASK in batch:
        attended = batch[keys.ATTENDED_MASK][row, :length]
        lines["hidden"] = ["" if each else "x" for each in attended]
    lines["segment"] = [str(i) for i in clean[keys.SEGMENT_IDS][row, :length]]
    for name, targets in _targets(batch, row):
        lines[name] = [text(targets[i]) if i in targets else "" for i in range(length)]
    if keys.FACTORISATION in batch:
        lines |= _factorised(batch, row, length)
    if keys.MODES in batch and keys.MASK_POSITIONS in batch:
        lines |= _seen_in_mode(batch, row, clean[keys.SEGMENT_IDS][row, :length])
    for name, labels in _questions(batch, row):
        lines[name] = [str(labels[i]) if i in labels else "" for i in range(length)]
    blocks = [*_wrapped(lines)]
    if rewritten:
        length = int(batch[keys.PADDING_MASK][row].sum())
        blocks += ["", *_wrapped({"seen": [text(i) for i in batch[keys.TOKEN_IDS][row, :length]]})]
    if keys.TARGET_IDS in batch:
        length = int(batch[keys.TARGET_MASK][row].sum())
        read, said = (batch[key][row, :length] for key in (keys.TARGET_IDS, keys.TARGET_LABELS))
        at = batch[keys.TARGET_POSITIONS][row, :length] if placed else ()
        written = {"position": [str(i) for i in at]} if placed else {}
        written |= {"reads": [text(i) for i in read], "writes": [text(i) for i in said]}
        counts = batch[keys.TARGET_WEIGHTS][row, :length] > 0
        if rewritten and not counts.all():
            written["scored"] = ["x" if each else "" for each in counts]
        blocks += ["", *_wrapped(written)]
    return "\n".join([*blocks, *_regions(batch, row), *_labels(batch, row, meanings)])


def spelled(tokenizer: Tokenizer, token_id: int) -> str:
    """A token as it is printed."""
    return tokenizer.decode([token_id]).translate(_SEEN) or "[PAD]"


def _regions(batch: Batch, row: int) -> Iterator[str]:
    """The box of each region of the row's picture, in hundredths, and whether it is hidden."""
    if keys.REGION_MASK not in batch:
        return
    there = np.flatnonzero(batch[keys.REGION_MASK][row])
    yield f"picture: {len(there)} regions"
    chosen = batch.get(keys.REGION_WEIGHTS, np.zeros(batch[keys.REGION_MASK].shape))[row]
    hidden = batch[keys.MASKED_REGIONS][row] if keys.MASKED_REGIONS in batch else chosen
    for region in there:
        left, top, right, bottom = (100 * batch[keys.REGION_BOXES][row, region]).round().astype(int)
        said = f"  {region + 1:>2}  {left}-{right} across, {top}-{bottom} down"
        if keys.DETECTED_CLASSES in batch:
            told = batch[keys.DETECTED_CLASSES][row, region]
            sure = batch[keys.DETECTED_CONFIDENCES][row, region]
            for name, number, share in zip(("object", "attribute"), told, sure, strict=True):
                said += f", {name} {number} ({share:.0%})" if share else ""
        yield (
            said
            + (", to predict" if chosen[region] else "")
            + (", hidden" if hidden[region] else "")
        )


def _labels(batch: Batch, row: int, meanings: Mapping[str, Sequence[Any]] | None) -> Iterator[str]:
    """The row's mode of reading and labels, in words where `meanings` has them."""
    if keys.MODES in batch:
        yield f"mode: {Mode(batch[keys.MODES][row]).name.lower()}"
    for key, value in sorted(batch.items()):
        if key.endswith("labels") and value.ndim == 1:
            weights = batch.get(f"{key.removesuffix('labels')}weights")
            if weights is not None and not weights[row]:
                continue  # not asked of this row
            meaning = f" = {meanings[key][row]}" if meanings and key in meanings else ""
            yield f"{key}: {value[row]!s}{meaning}"


def _questions(batch: Batch, row: int) -> Iterator[tuple[str, dict[int, int]]]:
    """(name, {position: label}) of each objective that classifies tokens at their own position."""
    for key in sorted(batch):
        name = key.removesuffix("_labels")
        weights = batch.get(f"{name}_weights")
        if weights is None or weights.ndim == 1:  # none, or of whole rows
            continue
        if key != name and name not in (*_SLOTS, _WRITTEN, _OF_REGIONS):
            yield name, {int(i): int(batch[key][row, i]) for i in np.flatnonzero(weights[row])}


def _targets(batch: Batch, row: int) -> Iterator[tuple[str, dict[int, int]]]:
    """(name, {position: token to predict}) of each kind of target that has slots."""
    for name in _SLOTS:
        if f"{name}_labels" not in batch:
            continue
        labels, weights = batch[f"{name}_labels"][row], batch[f"{name}_weights"][row]
        if name == "next":
            yield name, {int(i): int(labels[i]) for i in np.flatnonzero(weights)}
            continue
        positions = batch.get(f"{name}_positions", batch.get(keys.MASK_POSITIONS))
        assert positions is not None
        # Without own positions: shuffled tokens say which of masked_lm's slots are theirs, span
        # tokens take its first.
        slots = batch[f"{name}_slots"][row] if f"{name}_slots" in batch else np.arange(len(labels))
        at = positions[row][slots]
        yield name, {int(at[i]): int(labels[i]) for i in np.flatnonzero(weights)}


def _factorised(batch: Batch, row: int, length: int) -> dict[str, list[str]]:
    """The places of the factorisation, and what the first two and the last of its tokens see.

    A token that is predicted by its query stream sees those marked with a dot, not itself, which is
    marked ``?``.
    """
    places = batch[keys.FACTORISATION][row, :length]
    lines = {"place": [str(place) for place in places]}
    asked = batch[keys.QUERY_POSITIONS][row][batch[keys.QUERY_WEIGHTS][row] > 0]
    order = list(enumerate(asked[np.argsort(places[asked])], start=1))
    for number, at in order[:2] + order[2:][-1:]:
        seen = ["·" if place < places[at] else "" for place in places]
        seen[at] = "?"
        lines[f"sees {number}"] = seen
    return lines


def _seen_in_mode(batch: Batch, row: int, segment_ids: np.ndarray) -> dict[str, list[str]]:
    """What the first two and the last of the tokens to predict see in the row's mode.

    They see those marked with a dot, and themselves, marked ``?``, as they are in the input.
    """
    sees = seen_in(int(batch[keys.MODES][row]), segment_ids)
    asked = batch[keys.MASK_POSITIONS][row][batch[keys.MASK_WEIGHTS][row] > 0]
    order = list(enumerate(asked.tolist(), start=1))
    lines = {}
    for number, at in order[:2] + order[2:][-1:]:
        marks = ["·" if each else "" for each in sees[at]]
        marks[at] = "?"
        lines[f"sees {number}"] = marks
    return lines


def _wrapped(lines: Mapping[str, list[str]]) -> Iterator[str]:
    """The lines with aligned columns, broken into blocks of at most `WIDTH` columns."""
    head = max(map(len, lines)) + 2
    widths = [max(map(display_width, column)) + 1 for column in zip(*lines.values(), strict=True)]
    first = 0
    while first < len(widths):
        last, used = first + 1, head + widths[first]
        while last < len(widths) and used + widths[last] <= WIDTH:
            used += widths[last]
            last += 1
        if first:
            yield ""
        for name, cells in lines.items():
            padded = (
                cell + " " * (width - display_width(cell))
                for cell, width in zip(cells[first:last], widths[first:last], strict=True)
            )
            yield f"{name:<{head}}{''.join(padded)}".rstrip()
        first = last
