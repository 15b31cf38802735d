"""Writes ``recipes/schema.json``."""

from __future__ import annotations

from fourstage.digests import write_atomically
from fourstage.recipe.json_schema import FILE, schema_text

if __name__ == "__main__":
    write_atomically(FILE, schema_text())
