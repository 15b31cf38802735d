r"""JSON lines: one object per line; only ``\n`` ends a record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from corpora.archives import Content
from corpora.decoding import check_text, lines
from corpora.readers import Raw
from data_contracts.records import Rejected
from data_contracts.sources import Source

SUFFIXES = (".jsonl", ".ndjson", ".json")


def read(content: Content, source: Source) -> Iterator[Raw | Rejected]:
    """The object of each line; a line that is not an object is rejected with its number."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
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
            value = decoder.decode(stripped)
        except json.JSONDecodeError as error:
            yield Rejected(location, location, "not JSON", detail=f"column {error.colno}")
            continue
        except _NotStrictError as error:
            yield Rejected(location, location, str(error))
            continue
        except RecursionError:
            yield Rejected(location, location, "JSON nested too deep")
            continue
        except ValueError:
            # Python refuses to parse integers of more than 4,300 digits.
            yield Rejected(location, location, "not JSON", detail="a number of too many digits")
            continue
        if not isinstance(value, dict):
            yield Rejected(location, location, "not a JSON object")
            continue
        yield check_text(Raw(number, value), content.name)


class _NotStrictError(ValueError):
    """Invalid JSON that Python's parser would accept."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NotStrictError("a JSON key twice")
    return value


def _no_constant(name: str) -> Any:
    raise _NotStrictError("NaN or Infinity in JSON")
