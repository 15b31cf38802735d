"""The JSON schema of a recipe, with which editors complete and check recipes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fourstage.recipe.schema import Recipe
from fourstage.settings import REPOSITORY

FILE = REPOSITORY / "recipes" / "schema.json"


def recipe_schema() -> dict[str, Any]:
    """The schema; a key without words of its own has those of the mapping that it holds."""
    schema = Recipe.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A recipe of Fourstage"
    for mapping in (schema, *schema["$defs"].values()):
        for key in mapping.get("properties", {}).values():
            if "description" not in key and (held := held_in(key)):
                key["description"] = schema["$defs"][held]["description"].split("\n\n")[0]
    return schema


def held_in(node: Mapping[str, Any]) -> str | None:
    """Name of the mapping in ``$defs`` that a key holds, or that its items are."""
    return next(_references(node), None)


def schema_text() -> str:
    """The schema as checked in."""
    return json.dumps(recipe_schema(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _references(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield str(node["$ref"]).rpartition("/")[2]
        for inner in node.values():
            yield from _references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _references(inner)
