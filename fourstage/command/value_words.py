"""Types, ranges and values of settings in words, for the pages of reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fourstage.recipe.schema_tree import held_in
from fourstage.recipe.search import in_yaml

NONE = "–"  # nothing: no default, or no setting
MOST = 10**15  # largest count of a recipe, which no reader has to know


def written(value: object) -> str:
    """A value as a recipe has it, marked as code; a dash for none, and for an empty list."""
    if value is None or value == [] or value == {}:
        return NONE
    several_lines = isinstance(value, str) and "\n" in value
    return f"`{json.dumps(value) if several_lines else in_yaml(value)}`"


def number_words(whole: bool, range_: dict[str, Any]) -> str:
    """A kind of number with its range: ``whole number, 1 to 100``, ``number above 0``.

    Args:
        whole: Whether it is a whole number.
        range_: ``minimum``, ``exclusiveMinimum``, ``maximum`` and ``exclusiveMaximum`` of a JSON
            schema, where there are such.
    """
    lowest, above = range_.get("minimum"), range_.get("exclusiveMinimum")
    highest, below = range_.get("maximum"), range_.get("exclusiveMaximum")
    if whole:  # both ends belong to it
        lowest = above + 1 if above is not None else lowest
        highest = below - 1 if below is not None else highest
        above = below = None
    kind = "whole number" if whole else "number"
    if highest is not None and highest >= MOST:
        highest = None
    if lowest is not None and highest is not None:
        return f"{kind}, {lowest:,.12g} to {highest:,.12g}"
    ends = (("from", lowest), ("above", above), ("at most", highest), ("below", below))
    words = ", ".join(f"{word} {end:,.12g}" for word, end in ends if end is not None)
    return f"{kind} {words}".rstrip()


def values_of(node: Mapping[str, Any], link: Callable[[str], str]) -> str:
    """Type, allowed values and range of a key, as a JSON schema has them.

    Args:
        node: The key in the schema.
        link: Name of a mapping of the schema → a link to its section.
    """
    if "$ref" in node:
        return f"mapping {link(held_in(node) or '')}"
    options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if options:
        named = [values_of(each, link) for each in options if each.get("type") != "null"]
        return "; or ".join(named)
    words = node.get("enum") or ([node["const"]] if "const" in node else [])
    if words:
        return codes(words)
    match node.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return number_words(kind == "integer", dict(node))
        case "string":
            return "text"
        case "array":
            return f"list{_length(node)}: {values_of(node['items'], link)}"
        case "object" if isinstance(inner := node.get("additionalProperties"), Mapping):
            return f"by name: {values_of(inner, link)}"
        case "object":
            return "mapping"
    return "any"


def _length(node: Mapping[str, Any]) -> str:
    least, most = node.get("minItems", 0), node.get("maxItems")
    if most:
        return f" of {least} to {most}"
    return f" of {least} or more" if least > 1 else ""


def codes(words: Iterable[str]) -> str:
    """Words as code, with commas."""
    return ", ".join(f"`{word}`" for word in words)


def linked(heading: str) -> str:
    """A link to a section of the same page."""
    anchor = "".join(c for c in heading.lower() if c.isalnum() or c in "_-")
    return f"[{heading}](#{anchor})"


def prose(text: str) -> str:
    """A docstring's words as Markdown, in one line."""
    return " ".join(text.replace("``", "`").split())
