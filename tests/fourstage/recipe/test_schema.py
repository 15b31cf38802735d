"""The checked-in JSON schema."""

from __future__ import annotations

import json

from fourstage.recipe.json_schema import FILE, schema_text
from fourstage.recipe.schema import Recipe


def test_the_checked_in_schema_is_that_of_the_code():
    assert FILE.read_text(encoding="utf-8") == schema_text(), "run: python -m fourstage.recipe"


def test_it_names_every_key_and_allows_no_other():
    schema = json.loads(schema_text())
    assert set(schema["properties"]) == set(Recipe.model_fields)
    assert schema["additionalProperties"] is False
    assert "from" in schema["$defs"]["Seeds"]["properties"]


def test_every_key_is_described():
    schema = json.loads(schema_text())
    keys = {
        f"{name}.{key}": node
        for name, mapping in {"Recipe": schema, **schema["$defs"]}.items()
        for key, node in mapping["properties"].items()
    }
    assert not [path for path, node in keys.items() if not node.get("description")]
    assert keys["Stage.lora"]["description"] == schema["$defs"]["LowRank"]["description"]
