"""Writes ``recipes/schema.json``, with which editors complete and check recipes."""

from __future__ import annotations

import json

from fourstage.digests import write_atomically
from fourstage.recipe.schema import Recipe
from fourstage.settings import REPOSITORY

SCHEMA = REPOSITORY / "recipes" / "schema.json"


def schema_text() -> str:
    """The JSON schema of a recipe, as checked in."""
    schema = Recipe.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A recipe of Fourstage"
    return json.dumps(schema, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    write_atomically(SCHEMA, schema_text())
