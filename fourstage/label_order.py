"""The order of label names, which is that of a classifier's outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable


def in_order(labels: Iterable[str]) -> list[str]:
    """The distinct labels, sorted by value if all are whole numbers, else as text."""
    names = set(labels)
    if all(re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", name) for name in names):
        return sorted(names, key=int)
    return sorted(names)
