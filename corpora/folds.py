"""Cross-validation: parts of the training rows, each of which takes the place of the dev rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from corpora.identity import normal_form
from corpora.prepared import PreparedRow
from corpora.splits import position

FOLD = "fold"  # salt of the parts


def fold_rows(
    rows: Sequence[PreparedRow], number: int, folds: int, markings: Sequence[str] = ()
) -> list[PreparedRow]:
    """The training rows, those of one part as dev rows; the dataset's own dev rows are left out.

    Rows of one text are in one part, also if they differ in markings, punctuation or case: a
    network could otherwise recall a row of the same text. Parts are therefore of about, not
    exactly, the same size.

    Args:
        rows: Of every split; those of ``test`` are left out.
        number: Number of the part, from 1.
        folds: Number of parts.
        markings: Strings in the texts that mark something, such as entities.
    """
    found = []
    for row in rows:
        if row.split == "train":
            text = normal_form(row.whole, markings) or row.whole
            part = int(position(text, FOLD) * folds) + 1
            found.append(replace(row, split="dev" if part == number else "train"))
    return found
