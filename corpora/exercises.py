"""Questions about a passage that its own text answers, one of each kind, for smoke runs."""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

QUESTION = "Which name comes first?"
_KINDS = {
    "function": r"[A-Za-z_][\w.]*\(\)",
    "constant": r"[A-Z][A-Z_]+[A-Z]\b",
    "class": r"[A-Z][a-z]+[A-Z]\w*",
    "variable": r"[a-z]+_\w+",
}
_NAME = re.compile(
    rf"(?<!\w)(?:{'|'.join(f'(?P<{kind}>{form})' for kind, form in _KINDS.items())})"
)


def exercises(text: str) -> dict[str, Any]:
    """The answer of each kind that a passage gives.

    Args:
        text: The passage.

    Returns:
        The ``passage`` and the ``question``; ``names``: spans of the names in the passage, with
        their kinds; ``kinds``: the set of these kinds; ``first_name``: the answer to the question;
        ``opening`` and ``rest``: its halves; ``shared``: the share of all their words that both
        have; ``endings``, of which one goes on as the passage does; ``ending``: which.
    """
    names = [(match.start(), match.end(), match.lastgroup) for match in _NAME.finditer(text)]
    words = text.split()
    opening, rest = words[: len(words) // 2], words[len(words) // 2 :]
    endings = [rest, rest[::-1], sorted(rest)]
    turn = crc32(text.encode()) % len(endings)
    return {
        "passage": text,
        "question": QUESTION,
        "names": [[start, end, kind] for start, end, kind in names],
        "kinds": sorted({str(kind) for *_, kind in names}),
        "first_name": [[start, text[start:end]] for start, end, _ in names[:1]],
        "opening": " ".join(opening),
        "rest": " ".join(rest),
        "shared": len({*opening} & {*rest}) / len({*words}),
        "endings": [" ".join(ending) for ending in endings[-turn:] + endings[:-turn]],
        "ending": turn,
    }
