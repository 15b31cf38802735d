"""Paths into a recipe: ``stages[0].budget.steps`` as text and as keys."""

from __future__ import annotations

import re
from itertools import takewhile

from fourstage.errors import RecipeError

Path = tuple[str | int, ...]

CHOICES = frozenset({"budget", "optimizer", "head"})  # mappings of exactly one key

_ELEMENT = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")


def path_text(path: Path) -> str:
    """``("stages", 0, "budget")`` as ``stages[0].budget``."""
    text = ""
    for element in path:
        if isinstance(element, int):
            text += f"[{element}]"
        else:
            text += f".{element[:80]}" if text else element[:80]
    return text


def exclude_each_other(one: Path, other: Path) -> bool:
    """Whether a value at one of two different places replaces what is at the other."""
    shared = len(tuple(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
    return shared in (len(one), len(other)) or (shared > 0 and one[shared - 1] in CHOICES)


def parse_path(text: str, where: str) -> Path:
    """The keys and indices of ``stages[0].budget.steps``.

    Raises:
        RecipeError: The text is not a path.
    """
    path: list[str | int] = []
    at = 0
    while at < len(text):
        if path and text[at] == ".":
            at += 1
        found = _ELEMENT.match(text, at)
        if found is None:
            break
        path.append(int(found[2]) if found[2] else found[1])
        at = found.end()
    if not path or at < len(text) or text.endswith("."):
        raise RecipeError(
            f"{where}: expected a path such as `seed` or `stages[0].budget.steps`, "
            f"got {text[:80]!r}"
        )
    return tuple(path)
