"""Scores of word vectors on similarities and analogies in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def relations_line(facts: Mapping[str, Any]) -> str:
    """The score on one line, with what was asked and what was skipped."""
    whole = facts["asked"] + facts["skipped"]
    told = ", ".join(f"{name} {value:.4f}" for name, value in facts["metrics"].items())
    line = f"{told or 'no score'} on {facts['asked']:,} of {whole:,} lines"
    return f"{line}; the others have words without a vector" if facts["skipped"] else line
