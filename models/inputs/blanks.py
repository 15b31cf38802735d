"""Blanks that a person leaves in a text, to be filled in.

The cat [MASK] on the mat.    →    The cat | on the mat.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.protocols import Tokenizer

BLANK = "[MASK]"


def around_blanks(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """Token ids of the parts of a text around its blanks, two or more.

    A space before a blank belongs to what is left out, as it does to a word.

    Raises:
        ValueError: There is no blank.
    """
    *before, last = text.split(BLANK)
    if not before:
        raise ValueError(
            f"the network fills in blanks, and the text has none; write {BLANK} where something is"
            " left out"
        )
    parts = [*(part.rstrip() for part in before), last]
    return [ids.tolist() for ids in tokenizer.encode(parts)]


def joined(parts: Sequence[Sequence[int]], blanks: Sequence[int]) -> list[int]:
    """The parts with a token in place of each blank."""
    ids = list(parts[0])
    for blank, part in zip(blanks, parts[1:], strict=True):
        ids += [blank, *part]
    return ids
