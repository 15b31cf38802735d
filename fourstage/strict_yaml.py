"""Strict YAML: no tags, repeated keys, exponential aliases or surprising numbers.

Values are built from the node graph by the few rules below instead of PyYAML's constructors. The
result contains only text, whole and decimal numbers, booleans, lists and mappings with text keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fourstage.errors import RecipeError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
MAX_ALIASES = 100
MAX_NODES = 10_000  # with aliases expanded

_PREFIX = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z")
_DECIMAL = re.compile(r"[-+]?([0-9][0-9_]*)?\.[0-9_]*([eE][-+][0-9]+)?\Z")
_SPECIAL = re.compile(r"[-+]?\.(inf|nan)\Z", re.IGNORECASE)
_EXPONENT = re.compile(r"([-+]?)([0-9]*)(?:\.([0-9]*))?[eE]([-+]?)([0-9]+)\Z")
_MOST_DIGITS = 15
_LIMITS = {  # pydantic's names
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_TRUE = frozenset({"yes", "true", "on", "y"})


@dataclass
class ParsedYaml:
    """A parsed YAML text.

    Attributes:
        value: Plain Python values.
        spellings: The original words that YAML reads as true or false, by path.
    """

    value: Any
    spellings: dict[tuple[str | int, ...], str] = field(default_factory=dict)


def read_document(path: Path, where: str) -> ParsedYaml:
    """Read one file; `where` is its name in messages.

    Raises:
        RecipeError: The file cannot be read, is too large, not UTF-8 or not strict YAML.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecipeError(f"{where}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # a NUL in the path
        raise RecipeError(f"{where}: not a path") from error
    if len(data) > MAX_BYTES:
        raise RecipeError(
            f"{where}: expected at most {MAX_BYTES // 1024} KiB of YAML, got more; refer to data by"
            " name, do not put them here"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RecipeError(f"{where}: line {line}: not UTF-8; save the file as UTF-8") from error
    return parse_document(text, where)


def parse_document(text: str, where: str) -> ParsedYaml:
    """Read one YAML text; see `read_document`."""
    try:
        _check_events(text, where)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        reason = error.problem or error.context or "not understood"
        raise RecipeError(f"{where}: {place}not YAML: {reason}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise RecipeError(
            f"{where}: line {line}: character U+{_code(error.character):04X} is not allowed in YAML"
        ) from error
    document = ParsedYaml(None)
    if node is not None:
        document.value = _Builder(where, document.spellings).build(node, ())
    return document


def limit_of(kind: str, context: Mapping[str, Any]) -> str | None:
    """The limit that a number breaks: "at least 1"; None if the fault is another.

    Args:
        kind: Pydantic's name of the fault.
        context: What it says of it.
    """
    if kind not in _LIMITS:
        return None
    name, words = _LIMITS[kind]
    return f"{words} {context[name]:g}"


def kind_of(value: object) -> str:
    """A short description of a value, for messages."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the text {value[:60]!r}"
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return "a mapping"
    return f"a {type(value).__name__}"


def number_hint(text: str, whole: bool) -> str:
    """What to write in the place of a text that stands where a number is expected.

    Args:
        text: Such as ``1e-3``, ``1.0e5`` or ``08``, which YAML 1.1 reads as texts, or ``5`` in
            quotes.
        whole: Whether the number has to be whole.

    Returns:
        The end of a message, ``; YAML 1.1 reads 1e-3 as text: write 1.0e-3``; empty for a text that
        is no number.
    """
    try:
        number = float(text)
    except ValueError:
        return ""
    if not math.isfinite(number):
        return "; it is too large for a number" if any(map(str.isdigit, text)) else ""
    if _WHOLE.match(text) or _DECIMAL.match(text):
        return "; write the number without quotes"
    if whole:
        better = str(int(number)) if number.is_integer() else ""
    elif exponent := _EXPONENT.match(text):
        sign, before, after, direction, power = exponent.groups()
        better = f"{sign}{before or 0}.{after or 0}e{direction or '+'}{power}"
    else:
        better = str(number)
    fits = better and len(better) <= max(len(text) + 3, _MOST_DIGITS)
    return f"; YAML 1.1 reads {text[:40]} as text: write {better[:44]}" if fits else ""


def _code(character: str | bytes | int) -> int:
    return ord(character) if isinstance(character, str) else int(character)


def _check_events(text: str, where: str) -> None:
    """Refuse tags, too many aliases, deep nesting and a second document, before building nodes."""
    depth = aliases = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise RecipeError(f"{where}: line {line}: expected one document, got a second one")
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise RecipeError(
                f"{where}: line {line}: the tag {tag[:60]!r} is not allowed; write "
                "plain values only"
            )
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > MAX_ALIASES:
                raise RecipeError(
                    f"{where}: line {line}: more than {MAX_ALIASES} aliases; write the values out"
                )
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise RecipeError(f"{where}: line {line}: nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Builder:
    """Turns nodes into values and counts them, so that aliases cannot multiply without bound."""

    def __init__(self, where: str, spellings: dict[tuple[str | int, ...], str]):
        self.where = where
        self.spellings = spellings
        self.nodes = 0
        self.depth = 0

    def build(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.error(
                node, f"more than {MAX_NODES:,} values once aliases are expanded; refused"
            )
        if len(path) > MAX_DEPTH:
            # An alias inside its own anchor never ends.
            raise self.error(node, f"nested more than {MAX_DEPTH} deep once aliases are followed")
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*path, i)) for i, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        return self.scalar(node, path)

    def mapping(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> dict[str, Any]:
        lines: dict[str, int] = {}
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == f"{_PREFIX}merge":
                raise self.error(key_node, "merge keys (`<<`) are not allowed; see `extends`")
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != f"{_PREFIX}str":
                shown = str(key_node.value)[:40] if isinstance(key_node, yaml.ScalarNode) else "…"
                raise self.error(
                    key_node, f"a key must be text, got {shown!r}, which YAML reads as "
                    f"{key_node.tag.removeprefix(_PREFIX)}; quote it"
                )  # fmt: skip
            key = key_node.value
            if key in lines:
                raise RecipeError(
                    f"{self.where}: the key {key[:80]!r} occurs twice, in lines "
                    f"{lines[key]} and {line}; keep one"
                )
            lines[key] = line
            values[key] = self.build(value_node, (*path, key))
        return values

    def scalar(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        text: str = node.value
        match node.tag.removeprefix(_PREFIX):
            case "null":
                return None
            case "bool":
                self.spellings[path] = text
                return text.casefold() in _TRUE
            case "int" | "float" if len(text) > 60:
                raise self.error(node, "a number of more than 60 characters; quote it if it's text")
            case "int" if _WHOLE.match(text):
                return int(text.replace("_", ""))
            case "float" if _DECIMAL.match(text) and any(c.isdigit() for c in text):
                return float(text.replace("_", ""))
            case "float" if _SPECIAL.match(text):
                return float(text.lower().replace(".", "", 1))
            case "int" | "float":
                raise self.error(
                    node,
                    f"YAML reads {text[:40]!r} as a number in base 2, 8, 16 or 60; "
                    "write a plain decimal number, or quote it if it is text",
                )
            case _:
                return text  # including dates and `=`, which no recipe needs

    def error(self, node: yaml.Node, reason: str) -> RecipeError:
        return RecipeError(f"{self.where}: line {node.start_mark.line + 1}: {reason}")
