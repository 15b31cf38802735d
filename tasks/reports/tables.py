"""Markdown tables and the format of numbers in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

CODE_OR_TAG = re.compile(r"((?<!\\)`[^`]*`)|<(?=[A-Za-z/!?])")


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped, and what a page would take for a tag."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(map(_cell, row)) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(text: str) -> str:
    """A cell on one line. A page leaves out ``<unk>``, a word or a label, unless it is code."""
    flat = text.replace("|", "\\|").replace("\n", " ")
    return CODE_OR_TAG.sub(lambda found: found[1] or "&lt;", flat)


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def mean_of(score: Mapping[str, Any] | None) -> str:
    """The ``mean`` of several scores with their ``deviation``, if known; a dash for None."""
    if score is None:
        return "–"
    spread = "" if score["deviation"] is None else f" ± {score['deviation']:.4f}"
    return f"{score['mean']:.4f}{spread}"
