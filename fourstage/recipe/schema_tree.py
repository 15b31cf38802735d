"""What a key of the JSON schema holds: which mapping, behind which lists and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.recipe.schema import Recipe

RECIPE = Recipe.__name__


def mappings(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The mappings of a recipe by name, `RECIPE` itself first."""
    return {RECIPE: schema, **schema["$defs"]}


def held_in(node: Mapping[str, Any]) -> str | None:
    """Name of the mapping that a key holds, itself or in lists and under names."""
    return next(_references(node), None)


def steps_to(node: Mapping[str, Any]) -> str:
    """What is between a key and the mapping that it holds: ``[]`` a list, ``.NAME`` names."""
    if "$ref" in node:
        return ""
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        if held_in(option):
            return steps_to(option)
    if "items" in node:
        return "[]" + steps_to(node["items"])
    return ".NAME" + steps_to(node["additionalProperties"])


def _references(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield str(node["$ref"]).rpartition("/")[2]
        for inner in node.values():
            yield from _references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _references(inner)
