"""File of the numbers behind pictures of attention."""

from __future__ import annotations

ATTENTION = "attention.parquet"  # a line for each pair of tokens, by text, kind, layer and head
