"""Strict JSON: no key twice, no NaN, nothing nested beyond Python's depth."""

from __future__ import annotations

import json
from typing import Any

from corpora.archives import Content
from corpora.decoding import whole
from corpora.limits import MAX_JSON_BYTES
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.errors import ContractViolation


class NotJsonError(ValueError):
    """A text that is not strict JSON.

    Args:
        reason: A phrase that quotes no text.
        detail: The place, or what else is known.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason)
        self.reason, self.detail = reason, detail


def parsed(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        NotJsonError: It is not strict JSON.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text else ""
        raise NotJsonError("not JSON", f"{line}column {error.colno}") from None
    except RecursionError:
        raise NotJsonError("JSON nested too deep") from None
    except NotJsonError:
        raise
    except ValueError:
        # Python refuses to parse integers of more than 4,300 digits.
        raise NotJsonError("not JSON", "a number of too many digits") from None


def whole_value(content: Content, source: Source) -> Any:
    """The value of a file that is one JSON text.

    Raises:
        ContractViolation: It cannot be decoded, or is not strict JSON.
    """
    text = whole(content, source, MAX_JSON_BYTES, "write it as JSON lines")
    if isinstance(text, Rejected):
        raise ContractViolation(
            f"{content.where}: {text.reason} ({text.detail}); correct 'encoding' or the file."
        )
    try:
        return parsed(text.strip(" \t\r\n"))
    except NotJsonError as error:
        detail = f" ({error.detail})" if error.detail else ""
        raise ContractViolation(
            f"{content.where}: expected one JSON text, got {error.reason}{detail}."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NotJsonError("a JSON key twice")
    return value


def _no_constant(name: str) -> Any:
    raise NotJsonError("NaN or Infinity in JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
