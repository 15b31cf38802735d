"""Tells from the values of a column what kind of answer they may be (`data_contracts.sources`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpora.answers import STRUCTURE, UnusableError, choice_of, label_of, number_of, raw_spans
from corpora.tags import TAG

KINDS = ("label", "number", "label_set", "spans", "extract", "choice", "text")
STRANGE = 20  # one value in so many may be of another shape; a run sets its row aside and says so
LONGEST_LABEL = 80  # characters
SHORTEST_TEXT = 6  # characters, on average
ROWS_PER_LABEL = 5  # at least, on average
MOST_LABELS = 200
MOST_GRADES = 10  # numbers with fractions; if more are different, they are no classes
SEPARATORS = (";", "|", ",")

Column = Sequence[Any]


def kind_of(column: Column) -> str | None:
    """The kind of answer that a column's values look like; None if they look like none."""
    numbers = _numbers(column)
    if len(numbers) > MOST_GRADES and any(number % 1 for number in numbers):
        return "number"
    return next(
        (kind for kind in ("label", "extract", "spans", "label_set") if may_be(kind, column)), None
    )


def may_be(kind: str, column: Column) -> bool:
    """Whether a column's values can be read as a kind of answer, one of `KINDS`.

    Choices have columns of their own, so that one column can't tell.
    """
    there = [value for value in column if value is not None]
    match kind:
        case "label":
            return _repeat([label_of(value) for value in there])
        case "number":
            return len(_numbers(column)) > 1
        case "label_set":
            by = separator_of(column)
            sets = [list(map(str.strip, v.split(by))) if isinstance(v, str) else v for v in there]
            lists = all(isinstance(names, list) for names in sets)
            return lists and _repeat([label_of(name) for names in sets for name in names])
        case "spans":
            return are_tags(column) or (all(map(_has_spans, there)) and any(there))
        case "extract":
            return all(map(_is_extract, there)) and any(there)
        case "text":
            return _are_texts(there)
    return False


def is_choice(value: Any, count: int) -> bool:
    """Whether a value is the number, from 0, or the letter of one of so many choices."""
    try:
        choice_of(value, count)
    except UnusableError:
        return False
    return True


def are_tags(column: Column) -> bool:
    """Whether each value is a list with a tag for each word."""
    tags = [tag for value in column if isinstance(value, list) for tag in value]
    return all(isinstance(value, list) for value in column) and is_tagged(tags)


def is_tagged(tags: Sequence[Any]) -> bool:
    """Whether nearly all are tags of words, such as B-person and O, and some are not O."""
    right = sum(isinstance(tag, str) and bool(TAG.fullmatch(tag)) for tag in tags)
    return right >= 0.99 * len(tags) and any(tag != "O" for tag in tags)


def separator_of(column: Column) -> str | None:
    """What separates the labels of a set that is written as one text; None of lists."""
    texts = [value for value in column if isinstance(value, str)]
    return max(SEPARATORS, key=lambda each: sum(each in text for text in texts)) if texts else None


def _repeat(found: Sequence[tuple[str, str]]) -> bool:
    """Whether labels, with the kinds of their values, are few and repeat."""
    if any(kind == STRUCTURE or len(label) > LONGEST_LABEL for label, kind in found):
        return False
    different = {label for label, _ in found}
    return 2 <= len(different) <= max(2, min(MOST_LABELS, len(found) // ROWS_PER_LABEL))


def _are_texts(there: Sequence[Any]) -> bool:
    """Whether values are texts, or lists of equally good texts, of which most differ."""
    each = [value if isinstance(value, list) else [value] for value in there]
    texts = [text for some in each for text in some]
    if not texts or not nearly_all([isinstance(text, str) for text in texts]):
        return False
    words = [text for text in texts if isinstance(text, str)]
    long_enough = sum(map(len, words)) >= SHORTEST_TEXT * len(words)
    return long_enough and 2 * len(set(words)) > len(words) and not _numbers(words)


def nearly_all(right: Sequence[bool]) -> bool:
    """Whether at most one in `STRANGE` is wrong."""
    return STRANGE * right.count(False) <= len(right)


def _numbers(column: Column) -> set[float]:
    """The different numbers; none if too many values are something else."""
    numbers = [_number(value) for value in column if value not in (None, "")]
    found = {number for number in numbers if number is not None}
    return found if nearly_all([number is not None for number in numbers]) else set()


def _number(value: Any) -> float | None:
    try:
        return number_of(value)
    except UnusableError:
        return None


def _has_spans(value: Any) -> bool:
    try:
        list(raw_spans(value))
    except UnusableError:
        return False
    return True


def _is_extract(value: Any) -> bool:
    answers = value if isinstance(value, list) else [value]
    return all(isinstance(a, Mapping) and {"text", "answer_start"} <= set(a) for a in answers)
