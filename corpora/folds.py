"""Cross-validation: parts of the training rows, each of which takes the place of the dev rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from corpora.identity import normal_form
from corpora.prepared import PreparedRow
from corpora.splits import position

FOLD = "fold"  # salt of the parts


def fold_rows(
    rows: Sequence[PreparedRow],
    number: int,
    folds: int,
    markings: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
) -> list[PreparedRow]:
    """The training rows, those of one part as dev rows; the dataset's own dev rows are left out.

    Rows of one text are in one part, also if they differ in markings, punctuation or case: a
    network could otherwise recall a row of the same text. Where the source names groups, rows of
    one group are in one part instead, unless there are fewer groups than parts. Parts are therefore
    of about, not exactly, the same size.

    Args:
        rows: Of every split; those of ``test`` are left out.
        number: Number of the part, from 1.
        folds: Number of parts.
        markings: Strings in the texts that mark something, such as entities.
        groups: Group of each row by id, if the source names groups (`prepared_groups`).
    """
    train = [row for row in rows if row.split == "train"]
    named = {groups[row.id] for row in train} if groups else set()
    if groups and len(named) >= folds:
        # In turn, so that each part has a group, however few there are.
        ordered = sorted(named, key=lambda group: (position(group, FOLD), group))
        turn = {group: place % folds + 1 for place, group in enumerate(ordered)}
        parts = [turn[groups[row.id]] for row in train]
    else:
        texts = (normal_form(row.whole, markings) or row.whole for row in train)
        parts = [int(position(text, FOLD) * folds) + 1 for text in texts]
    return [
        replace(row, split="dev" if part == number else "train")
        for row, part in zip(train, parts, strict=True)
    ]
