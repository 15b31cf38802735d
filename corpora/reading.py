"""Reads documents and rows from a source's files: chooses the reader, maps fields, checks types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpora.answers import CanonicalAnswer, UnusableError, answer_of, label_of, tagged
from corpora.archives import Content, contents
from corpora.cleaning import clean
from corpora.joins import joined_table
from corpora.limits import MAX_ID_CHARACTERS
from corpora.readers import Raw, records
from corpora.snapshot import Snapshot
from data_contracts.records import Document, Rejected, Row, Split
from data_contracts.sources import Source, columns_in, filled


def read_documents(source: Source, snapshot: Snapshot) -> Iterator[Document | Rejected]:
    """Every document of a corpus, and every rejected record, in the order of the files.

    Raises:
        ContractViolation: A file cannot be read, or has changed since the snapshot.
    """
    for _, content, item in _records(source, snapshot):
        if isinstance(item, Raw):
            item = _document(source, content, item)
        yield item


def read_rows(source: Source, snapshot: Snapshot) -> Iterator[tuple[Split | None, Row | Rejected]]:
    """Every row of a dataset and every rejected record, with the split its file is listed under.

    Raises:
        ContractViolation: A file cannot be read, or has changed since the snapshot.
    """
    for split, content, item in _records(source, snapshot):
        if isinstance(item, Raw):
            item = _row(source, content, item, split)
        yield split, item


def _records(
    source: Source, snapshot: Snapshot
) -> Iterator[tuple[Split | None, Content, Raw | Rejected]]:
    """Every record, with the columns of the joined tables, and the split it is listed under."""
    tables = [
        joined_table(source, join, states)
        for join, states in zip(source.join, snapshot.joined, strict=True)
    ]
    read = Counter[Split | None]()
    for state in snapshot.files:
        for content in contents(state):
            for item in records(source, content):
                split = state.split
                read[split] += 1
                for table in tables:
                    if isinstance(item, Raw):
                        split, item = table.added_to(item, content.name, split)
                if isinstance(item, Raw) and (column := _left_out(source, item.values)):
                    location = f"{content.name}:{item.line}"
                    reason = f"left out by 'where' ({column})"
                    item = Rejected(location, location, reason, "removed")
                yield split, content, item
    for table in tables:
        table.check_lines(source, read)


def _left_out(source: Source, values: Mapping[str, Any]) -> str:
    """The column because of which `where` leaves a record out; empty if it is kept."""
    for column, wanted in source.where.items():
        value = label_of(values.get(column))[0]
        if value.casefold() not in {each.casefold() for each in wanted}:
            return column
    return ""


def _document(source: Source, content: Content, raw: Raw) -> Document | Rejected:
    location = f"{content.name}:{raw.line}"
    identity = _id(source, raw.values, location)
    if isinstance(identity, Rejected):
        return identity
    try:
        text = _text(source.fields.text, raw.values)
    except UnusableError as error:
        return Rejected(identity, location, error.reason, detail=error.detail)
    return Document(identity, text, location)


def _row(source: Source, content: Content, raw: Raw, split: Split | None) -> Row | Rejected:
    location = f"{content.name}:{raw.line}"
    identity = _id(source, raw.values, location)
    if isinstance(identity, Rejected):
        return identity
    fields = source.fields
    try:
        text, pair, choices, answer = _texts_and_answer(source, raw.values)
    except UnusableError as error:
        return Rejected(identity, location, error.reason, detail=error.detail)
    group = None
    if fields.group is not None:
        value = raw.values.get(fields.group)
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            return Rejected(identity, location, f"no group in {fields.group!r}")
        group = str(value)
    picture = None
    if fields.picture is not None:
        value = raw.values.get(fields.picture)
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            return Rejected(identity, location, f"no name of a picture in {fields.picture!r}")
        picture = str(value)
    label, kind = answer.text, answer.value_type
    mended = answer.mended
    return Row(identity, text, pair, label, split, location, kind, group, choices, mended, picture)


def _texts_and_answer(
    source: Source, values: Mapping[str, Any]
) -> tuple[str, str | None, tuple[str, ...] | None, CanonicalAnswer]:
    """The texts, the choices and the answer of a row."""
    fields = source.fields
    assert fields.label is not None
    if source.answers == "spans" and isinstance(tokens := values.get(fields.text), list):
        text, answer = tagged(tokens, _value(fields.label, values), source)
        return text, None, None, answer
    text = _text(fields.text, values)
    pair = None if fields.text_pair is None else _text(fields.text_pair, values)
    choices = None if fields.choices is None else _choices(fields.choices, values)
    answer = answer_of(_value(fields.label, values), source, text, pair, choices)
    return text, pair, choices, answer


def _choices(columns: str | Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """The choices of a row; of columns, the last may be empty where a row has fewer choices."""
    if isinstance(columns, str):
        choices = _value(columns, values)
        if isinstance(choices, Mapping):  # as Hugging Face's ARC has them: {"text": [...]}
            choices = choices.get("text")
        if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
            raise UnusableError("choices that are not a list of texts")
    else:
        found = [_value(column, values) for column in columns]
        while found and (found[-1] is None or not str(found[-1]).strip()):
            found.pop()
        choices = [_text(column, values) for column in columns[: len(found)]]
    if not all(clean(choice).text for choice in choices):
        raise UnusableError("an empty choice")
    if len(choices) < 2:
        raise UnusableError("fewer than two choices")
    return tuple(choices)


def _text(pattern: str, values: Mapping[str, Any]) -> str:
    """The text of a column, or of a pattern of several columns; a list of sentences is one text."""
    if several := columns_in(pattern):
        return filled(pattern, {column: _text(column, values) for column in several})
    value = _value(pattern, values)
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "\n".join(filter(str.strip, value))
    if not isinstance(value, str):
        raise UnusableError(f"field {pattern!r} is not text", _kind(value))
    return value


def _value(column: str, values: Mapping[str, Any]) -> Any:
    if column not in values:
        raise UnusableError(f"no field {column!r}")
    return values[column]


def _id(source: Source, values: Mapping[str, Any], location: str) -> str | Rejected:
    """The id of a record from its id field, else its location."""
    column = source.fields.id
    if column is None:
        value = values.get("id")
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            return location
    else:
        value = values.get(column)
        if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
            return Rejected(location, location, f"no id in field {column!r}")
    try:
        identity = str(value)
    except ValueError:  # more digits than Python prints
        return Rejected(location, location, "an id of too many digits")
    if len(identity) > MAX_ID_CHARACTERS or not identity.isprintable():
        return Rejected(location, location, "an id that is too long or not printable")
    return identity


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return f"a {type(value).__name__}"
