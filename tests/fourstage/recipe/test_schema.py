"""The checked-in JSON schema."""

from __future__ import annotations

import json

from fourstage.recipe.__main__ import SCHEMA, schema_text
from fourstage.recipe.schema import Recipe


def test_the_checked_in_schema_is_that_of_the_code():
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "run: python -m fourstage.recipe"


def test_it_names_every_key_and_allows_no_other():
    schema = json.loads(schema_text())
    assert set(schema["properties"]) == set(Recipe.model_fields)
    assert schema["additionalProperties"] is False
    assert "from" in schema["$defs"]["Seeds"]["properties"]


def test_keys_that_do_not_explain_themselves_are_described():
    schema = json.loads(schema_text())
    stage = schema["$defs"]["Stage"]["properties"]
    for key in ("init", "corpora", "phases", "long_rows", "batch_size", "refresh", "precision"):
        assert stage[key]["description"], key
