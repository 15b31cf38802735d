"""Cross-validation: parts of the training rows, each of which takes the place of the dev rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from corpora.identity import text_key
from corpora.prepared import PreparedRow
from corpora.splits import position
from fourstage.errors import ContractViolation

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
    of about, not exactly, the same size. Each has some rows, however few there are.

    Args:
        rows: Of every split; those of ``test`` are left out.
        number: Number of the part, from 1.
        folds: Number of parts.
        markings: Strings in the texts that mark something, such as entities.
        groups: Group of each row by id, if the source names groups (`prepared_groups`).

    Raises:
        ContractViolation: There are fewer texts than parts.
    """
    train = [row for row in rows if row.split == "train"]
    named = {groups[row.id] for row in train} if groups else set()
    if groups and len(named) >= folds:
        parts = _in_turn([groups[row.id] for row in train], folds)
    else:
        texts = [text_key(row.whole, markings) for row in train]
        if (found := len(set(texts))) < folds:
            raise ContractViolation(
                f"search.folds: expected at most {found}, the number of different texts among the"
                f" training rows, got {folds}; a part would have no rows"
            )
        parts = [int(position(text, FOLD) * folds) + 1 for text in texts]
        if len(set(parts)) < folds:
            parts = _in_turn(texts, folds)
    return [
        replace(row, split="dev" if part == number else "train")
        for row, part in zip(train, parts, strict=True)
    ]


def _in_turn(names: Sequence[str], folds: int) -> list[int]:
    """The part of each name, dealt in turn, so that none is empty if there are enough of them."""
    ordered = sorted(set(names), key=lambda name: (position(name, FOLD), name))
    turn = {name: place % folds + 1 for place, name in enumerate(ordered)}
    return [turn[name] for name in names]
