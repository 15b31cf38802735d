"""Finds the text column and the label column of a table, by their names and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpora.answers import STRUCTURE, label_of
from fourstage.errors import ContractViolation, UnknownNameError, listed

TEXTS = ("text", "sentence", "body", "content", "review", "message", "abstract", "text_a", "文本")
LABELS = (
    *("label", "labels", "class", "category", "target", "queue", "intent", "topic", "sentiment"),
    *("polarity", "tag", "type", "标签", "类别", "分类", "情感"),
)
IDS = ("id", "number", "uid", "guid", "key", "doc_id", "编号")
SHORTEST_TEXT = 6  # characters, on average
LONGEST_LABEL = 80  # characters
ROWS_PER_LABEL = 5  # at least, on average
MOST_LABELS = 200
LONGEST_NAME = 60  # characters of a column name

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Roles:
    """The column of each role, and what had to be guessed."""

    text: str
    label: str | None
    id: str | None
    assumed: tuple[str, ...]


def roles(
    where: str, records: Records, labelled: bool, text: str | None = None, label: str | None = None
) -> Roles:
    """The roles of a table's columns.

    Args:
        where: Name of the files in messages.
        records: A sample of its records.
        labelled: Whether one column is a label.
        text: The text column, if the user named it.
        label: The label column, if the user named it.

    Raises:
        UnknownNameError: A column named by the user does not exist.
        ContractViolation: No column, or more than one, can be the text or the label.
    """
    columns = list(dict.fromkeys(name for record in records for name in record))
    values = {name: [record.get(name) for record in records] for name in columns}
    for option, named in (("--text", text), ("--label", label)):
        if named is not None and named not in columns:
            raise UnknownNameError(f"{where}: {option}", named, "a column", columns)
    assumed = []
    if text is None:
        text, how = _text(where, values, label)
        assumed += [how] if how else []
    if labelled and label is None:
        label, how = _label(where, values, text)
        assumed += [how] if how else []
    identity = _identity(values, (text, label))
    if identity is None and "id" in columns and "id" not in (text, label):
        assumed.append(
            "the values of column 'id' repeat, and rows with a repeated id are quarantined; rename"
            " the column to keep them all"
        )
    return Roles(text, label if labelled else None, identity, tuple(assumed))


def headless(first: Sequence[str], records: Records) -> bool:
    """Whether a table has no header: its first row looks like the others.

    Args:
        first: The cells of the first row.
        records: The rows after it, by column number.
    """
    if any(len(cell) > LONGEST_NAME or _is_number(cell) for cell in first):
        return True
    for number, cell in enumerate(first, start=1):
        seen = {record.get(str(number)) for record in records}
        if cell in seen and len(seen) <= max(2, len(records) // ROWS_PER_LABEL):
            return True
    return False


def _named(columns: Iterable[str]) -> str:
    return listed([repr(name[:LONGEST_NAME]) for name in columns], 20)


def _text(where: str, values: Mapping[str, list], label: str | None) -> tuple[str, str]:
    lengths = {
        name: sum(map(len, texts)) / len(texts)
        for name, column in values.items()
        if name != label
        and (texts := [value for value in column if isinstance(value, str)])
        and 2 * len(texts) > len(column)
    }
    long = {name: length for name, length in lengths.items() if length >= SHORTEST_TEXT}
    if not long:
        raise ContractViolation(
            f"{where}: no column looks like text. Columns: {_named(values)}. Name it with"
            " --text COLUMN."
        )
    if "text" in long:
        return "text", ""
    # A summary may have the better name, but the longest column holds the most text.
    most = max(long, key=long.__getitem__)
    named = [name for name in long if name.lower() in TEXTS]
    best = max(named, key=long.__getitem__) if named else most
    if len(long) == 1 or (named and best == most):
        return best, ""
    others = _named([name for name in long if name != best])
    return best, f"the text is taken from column {best!r}; --text selects another: {others}"


def _label(where: str, values: Mapping[str, list], text: str) -> tuple[str, str]:
    able = [name for name in values if name != text and _can_label(values[name])]
    named = [name for name in able if name.lower() in LABELS]
    if len(named) == 1:
        return named[0], ""
    if len(able) == 1:
        return able[
            0
        ], f"the label is taken from column {able[0]!r}, the only one whose values repeat"
    others = [name for name in values if name != text]
    if not able:
        raise ContractViolation(
            f"{where}: no label column found: expected one with a few values that repeat. Columns:"
            f" {_named(values)}. Say which one is with --label COLUMN."
            if others
            else f"{where}: no label column found: there is only {_named(values)}. Text"
            " without labels goes to --corpus."
        )
    raise ContractViolation(
        f"{where}: {len(able)} columns may be the label: {_named(named or able)}. Say which one is"
        " with --label COLUMN."
    )


def _can_label(column: Sequence[Any]) -> bool:
    found = [label_of(value) for value in column]
    if any(kind == STRUCTURE or len(label) > LONGEST_LABEL for label, kind in found):
        return False
    different = {label for label, kind in found if kind != "nothing"}
    return 2 <= len(different) <= max(2, min(MOST_LABELS, len(column) // ROWS_PER_LABEL))


def _identity(values: Mapping[str, list], taken: Sequence[str | None]) -> str | None:
    for name, column in values.items():
        if name.lower() in IDS and name not in taken:
            plain = all(isinstance(v, str | int) and not isinstance(v, bool) for v in column)
            if plain and "" not in column and len(set(map(str, column))) == len(column):
                return name
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
