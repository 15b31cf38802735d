"""Reads documents and rows from a source's files: chooses the reader, maps fields, checks types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from corpora.archives import Content, contents
from corpora.file_state import FileState
from corpora.labels import STRUCTURE, why_no_name
from corpora.limits import MAX_ID_CHARACTERS
from corpora.readers import Raw, format_by_name, reader, unknown_format
from corpora.snapshot import Snapshot
from data_contracts.records import Document, Rejected, Row, Split
from data_contracts.sources import Source
from fourstage.errors import ContractViolation


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
    for state, content, item in _records(source, snapshot):
        if isinstance(item, Raw):
            item = _row(source, content, item, state.split)
        yield state.split, item


def _records(
    source: Source, snapshot: Snapshot
) -> Iterator[tuple[FileState, Content, Raw | Rejected]]:
    for state in snapshot.files:
        for content in contents(state):
            name = source.format or ("python_docs" if source.packages else None)
            name = name or format_by_name(content.name)
            if name is None:
                raise ContractViolation(unknown_format(source, content.where))
            for item in reader(name, f"source {source.name}")(content, source):
                yield state, content, item


def _document(source: Source, content: Content, raw: Raw) -> Document | Rejected:
    location = f"{content.name}:{raw.line}"
    identity = _id(source, raw.values, location)
    if isinstance(identity, Rejected):
        return identity
    text = _text(source.fields.text, raw.values, identity, location)
    if isinstance(text, Rejected):
        return text
    return Document(identity, text, location)


def _row(source: Source, content: Content, raw: Raw, split: Split | None) -> Row | Rejected:
    location = f"{content.name}:{raw.line}"
    identity = _id(source, raw.values, location)
    if isinstance(identity, Rejected):
        return identity
    fields = source.fields
    text = _text(fields.text, raw.values, identity, location)
    if isinstance(text, Rejected):
        return text
    pair = None
    if fields.text_pair is not None:
        pair = _text(fields.text_pair, raw.values, identity, location)
        if isinstance(pair, Rejected):
            return pair
    assert fields.label is not None
    if fields.label not in raw.values:
        return Rejected(identity, location, f"no field {fields.label!r}")
    label, kind = label_of(raw.values[fields.label])
    if not label.strip():
        return Rejected(identity, location, "no label", detail=kind)
    if kind != STRUCTURE and (reason := why_no_name(label)):
        return Rejected(identity, location, reason, detail=f"{len(label):,} characters")
    group = None
    if fields.group is not None:
        value = raw.values.get(fields.group)
        if not isinstance(value, str | int) or isinstance(value, bool):
            return Rejected(identity, location, f"no group in {fields.group!r}")
        group = str(value)
    return Row(identity, text, pair, label, split, location, kind, group)


def _text(column: str, values: Mapping[str, Any], identity: str, location: str) -> str | Rejected:
    value = values.get(column, _ABSENT)
    if isinstance(value, str):
        return value
    if value is _ABSENT:
        return Rejected(identity, location, f"no field {column!r}")
    return Rejected(identity, location, f"field {column!r} is not text", detail=_kind(value))


_ABSENT = object()


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


def label_of(value: Any) -> tuple[str, str]:
    """A label as text, and the kind of its value; nothing is cast silently."""
    match value:
        case None:
            return "", "nothing"
        case str():
            return value, "text"
        case bool():
            return str(value).lower(), "boolean"
        case int():
            return json.dumps(value), "integer"
        case float():
            return json.dumps(value), "float"
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str), STRUCTURE


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
