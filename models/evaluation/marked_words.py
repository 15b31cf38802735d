"""Words between markers in sentences, and whether two of them mean the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fourstage.errors import ContractViolation

SAME, DIFFERENT = "same", "different"


@dataclass(frozen=True)
class Occurrence:
    """A word in a text.

    Attributes:
        text: The text.
        start: The word's first character.
        end: The character after its last.
    """

    text: str
    start: int
    end: int


def marked(text: str, markings: Sequence[str]) -> Occurrence | None:
    """The word between two markers, in the text without them; None unless there is one.

    Args:
        text: A text such as ``to << play >> chess``.
        markings: The marker before a word, and that after it; blanks inside them are markers' own.
    """
    before, after = map(re.escape, markings)
    found = list(re.finditer(rf"{before}\s*(.+?)\s*{after}", text, re.DOTALL))
    if len(found) != 1:
        return None
    (match,) = found
    word = match[1]
    whole = text[: match.start()] + word + text[match.end() :]
    return Occurrence(whole, match.start(), match.start() + len(word))


def word_in(text: str, word: str) -> Occurrence | None:
    """The first place of a word in a text, whatever its case; None if it is not there.

    It is a whole word there, ``play`` is not in ``player``; of Chinese, any characters are.
    """
    for match in re.finditer(re.escape(word), text, re.IGNORECASE):
        start, end = match.span()
        sides = (text[start - 1 : start], word[:1]), (word[-1:], text[end : end + 1])
        if not any(_joined(left) and _joined(right) for left, right in sides):
            return Occurrence(text, start, end)
    return None


def _joined(character: str) -> bool:
    """Whether a character is part of a word with those beside it: a letter, but no wide one."""
    return character.isalnum() and unicodedata.east_asian_width(character) not in ("W", "F")


@dataclass(frozen=True)
class WordInContext:
    """A word in two sentences, and whether it means the same."""

    id: str
    first: Occurrence
    second: Occurrence
    same: bool

    @property
    def same_form(self) -> bool:
        """Whether the word is written alike in both, whatever its case."""
        first, second = (side.text[side.start : side.end] for side in (self.first, self.second))
        return first.casefold() == second.casefold()


def pairs_of(
    rows: Iterable[tuple[str, Sequence[str], str]], markings: Sequence[str]
) -> tuple[list[WordInContext], int]:
    """Rows as pairs, and how many are left out: without an answer or one marked word a sentence.

    Args:
        rows: Id, two sentences and answer of each.
        markings: The markers around a word.

    Raises:
        ContractViolation: No row is left.
    """
    found, skipped = [], 0
    for name, texts, answer in rows:
        first, second = (marked(text, markings) for text in texts)
        if first is None or second is None or answer not in (SAME, DIFFERENT):
            skipped += 1
        else:
            found.append(WordInContext(name, first, second, answer == SAME))
    if not found:
        raise ContractViolation(
            f"word_in_context: expected rows answered {SAME} or {DIFFERENT}, with one word between"
            f" {' and '.join(markings)} in each sentence; got none among {skipped:,} rows"
        )
    return found, skipped
