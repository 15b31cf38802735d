"""The JSON schema of a recipe, with which editors complete and check recipes."""

from __future__ import annotations

import json
from typing import Any

from fourstage.recipe.key_defaults import DEPENDS, defaults_by_key
from fourstage.recipe.schema import Recipe
from fourstage.recipe.schema_tree import held_in, mappings
from fourstage.settings import REPOSITORY

FILE = REPOSITORY / "recipes" / "schema.json"


def recipe_schema() -> dict[str, Any]:
    """The schema, with the defaults of keys that have the same in every stage.

    A key without words of its own has those of the mapping that it holds.
    """
    schema = Recipe.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A recipe of Fourstage"
    defaults = defaults_by_key(schema)
    for name, mapping in mappings(schema).items():
        for key, node in mapping["properties"].items():
            if "description" not in node and (held := held_in(node)):
                node["description"] = schema["$defs"][held]["description"].split("\n\n")[0]
            node.pop("default", None)  # of the class: None for a key that may be left out
            values = list(defaults.get((name, key), {}).values())
            if values and all(value == values[0] is not DEPENDS for value in values):
                node["default"] = values[0]
    return schema


def schema_text() -> str:
    """The schema as checked in."""
    return json.dumps(recipe_schema(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
