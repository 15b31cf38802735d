"""Counts of a dataset's pictures in words, for reports and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

READ = "read"
_WORDS = {
    "read": READ,
    "not_named": "that no row names",
    "with_more_regions": "with more regions than are kept",
}


def picture_table(counts: Mapping[str, Any]) -> dict[str, int]:
    """What is counted of the pictures → how many; empty for a dataset without pictures.

    Args:
        counts: A dataset's, with the counts of `corpora.pictures.read_pictures` as ``pictures``.
    """
    told = counts.get("pictures") or {}
    found = {said: told[name] for name, said in _WORDS.items() if told.get(name)}
    faults = told.get("without_regions", {}).items()
    return found | {f"without regions: {reason}": number for reason, number in faults}
