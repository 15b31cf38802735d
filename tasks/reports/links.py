"""Scores of link prediction in words: rank, reciprocal rank and hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINK_SCORES = ("mean rank", "MRR", "Hits@1", "Hits@3", "Hits@10")


def link_cells(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """A cell for each of `LINK_SCORES`."""
    scores = facts["metrics"]
    shares = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")
    return f"{scores['mean_rank']:,.0f}", *(f"{scores[name]:.4f}" for name in shares)


def link_line(facts: Mapping[str, Any]) -> str:
    """The scores on one line, with the number of triples that could not be ranked."""
    line = ", ".join(
        f"{name} {cell}" for name, cell in zip(LINK_SCORES, link_cells(facts), strict=True)
    )
    told = f"; {facts['unknown']:,} have names without a vector and count as the last"
    return line + told if facts["unknown"] else line
