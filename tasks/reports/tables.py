"""Markdown tables and the format of numbers in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in r) for r in rows]
    return "\n".join(f"| {line} |" for line in lines)


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def mean_of(score: Mapping[str, Any] | None) -> str:
    """The ``mean`` of several scores with their ``deviation``, if known; a dash for None."""
    if score is None:
        return "–"
    spread = "" if score["deviation"] is None else f" ± {score['deviation']:.4f}"
    return f"{score['mean']:.4f}{spread}"
