r"""JSON lines: one object per line; only ``\n`` ends a record."""

from __future__ import annotations

from collections.abc import Iterator

from corpora.archives import Content
from corpora.decoding import check_text, lines
from corpora.json_values import NotJsonError, parsed
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = (".jsonl", ".ndjson", ".json")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """The object of each line; a line that is not an object is rejected with its number."""
    for item in lines(content, source):
        if isinstance(item, Rejected):
            yield item
            continue
        number, line = item
        stripped = line.strip(" \t\r\n")
        if not stripped:
            continue
        location = f"{content.name}:{number}"
        try:
            value = parsed(stripped)
        except NotJsonError as error:
            yield Rejected(location, location, error.reason, detail=error.detail)
            continue
        if not isinstance(value, dict):
            yield Rejected(location, location, "not a JSON object")
            continue
        yield check_text(Raw(number, value), content.name)
