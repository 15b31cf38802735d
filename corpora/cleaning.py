"""Cleans text: NFC, no invisible characters, uniform whitespace and line ends."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, groupby

# Terminal escape sequences are removed as a whole; otherwise "[2J" would be left as text. A title
# that never ends is text: to its end would be the rest of the document.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\](?:[^\x07\x1b\n]*(?:\x07|\x1b\\))?|[@-Z\\^_])")
# Not the form feed, the line break of word processors (\x0b) and the separators \x1c to \x1f, which
# are blanks between words.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# U+00AD soft hyphen, U+2060 word joiner, U+FEFF, Mongolian and Hangul fillers, interlinear marks,
# tags.
_ZERO_WIDTH = re.compile(
    "[\u00ad\u034f\u115f\u1160\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Joiners hold together an emoji family or a conjunct letter; elsewhere they are invisible noise.
_JOINERS = re.compile("[\u200c\u200d]")
_ANY = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile("\r\n|[\r\u0085\u2028]")
_BLANKS = re.compile(r"[^\S\n]{2,}|[^\S\n ]")  # all but single spaces, which stay
_ROUND_LINE_ENDS = re.compile(r" +\n *|\n +")
_LINE_RUNS = re.compile(r"\n{3,}")
_WORD = re.compile(r"\S+")
# So many characters without a letter may be marks, which `normalize` sorts in quadratic time.
_LONG_RUN = re.compile(r"[^\w\s\x00-\x7f]{256,}")
_MOST_MARKS = 8  # that a character is composed with


@dataclass(frozen=True)
class Cleaned:
    """A text after cleaning, and how many characters of each kind were removed.

    Attributes:
        text: The cleaned text.
        removed: Number of characters by kind: ``escape``, ``control``, ``bidi``, ``zero_width``.
    """

    text: str
    removed: Mapping[str, int] = field(default_factory=dict)


def clean(text: str) -> Cleaned:
    r"""Clean one text. Cleaning is idempotent.

    Args:
        text: Any text.

    Example:
        >>> clean("do\x00se\u202e  of\r\n\u200bcafe\u0301")
        Cleaned(text='dose of\ncafé', removed={'control': 1, 'bidi': 1, 'zero_width': 1})
    """
    removed: dict[str, int] = {}
    if _ANY.search(text):
        text, removed = _without_invisible(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", _LONG_RUN.sub(_in_order, text))
    text = _BLANKS.sub(" ", text)
    text = _ROUND_LINE_ENDS.sub("\n", text)
    text = _LINE_RUNS.sub("\n\n", text)
    return Cleaned(text.strip(), removed)


def place_after(before: str, after: str, start: int, end: int) -> tuple[int, int] | None:
    """Where a part of a text is once the text is cleaned; None if that cannot be told.

    Cleaning keeps the order of all characters but blanks, so they are counted.

    Args:
        before: The text.
        after: The same, cleaned.
        start: Where the part begins.
        end: Where the character after it is.
    """
    part = clean(before[start:end]).text
    first, printed = _num_printed(before, after, start), _places_printed(after)
    if not part or first >= len(printed):
        return None
    place = printed[first]
    if after[place : place + len(part)] != part:
        return None
    return place, place + len(part)


def places_before(
    before: str, after: str, places: Sequence[tuple[int, int]]
) -> list[tuple[int, int]] | None:
    """Where parts of a cleaned text were before it was cleaned; None if that cannot be told.

    Args:
        before: The text.
        after: The same, cleaned.
        places: Parts of the cleaned text that begin and end with no blank: first character, and
            the character after the last.
    """
    if before == after:
        return list(places)
    if (told := _words(before, after)) is None:
        return None
    words, counts = told
    printed = list(accumulate((not character.isspace() for character in after), initial=0))

    def place_of(number: int) -> int:
        """Of a printed character, by its number."""
        word = bisect_right(counts, number) - 1
        start, written, cleaned = words[word]
        number -= counts[word]
        if written == cleaned:
            return start + number
        ends = range(1, len(written) + 1)
        return start + bisect_right(ends, number, key=lambda end: _length(written[:end]))

    found = []
    for first, behind in places:
        start, end = place_of(printed[first]), place_of(printed[behind] - 1) + 1
        ends = range(end, min(end + _MOST_MARKS, len(before)) + 1)
        part = after[first:behind]
        end = next((end for end in ends if clean(before[start:end]).text == part), None)
        if end is None:
            return None
        found.append((start, end))
    return found


def _num_printed(before: str, after: str, end: int) -> int:
    """The number of printed characters that are left of a text before a place."""
    if (told := _words(before, after)) is None:
        return sum(map(len, clean(before[:end]).text.split()))
    words, counts = told
    word = bisect_right(words, end, key=lambda word: word[0]) - 1
    if word < 0:
        return 0
    start, written, _ = words[word]
    within = end - start
    return counts[word + 1] if within >= len(written) else counts[word] + _length(written[:within])


def _length(part: str) -> int:
    return len(clean(part).text)


@lru_cache(maxsize=1)  # all parts of a text are asked for together
def _words(before: str, after: str) -> tuple[list[tuple[int, str, str]], list[int]] | None:
    """The words of a text: where each starts, as it is written, and cleaned.

    Also the number of printed characters before each, and of all. None if the cleaned words are not
    the cleaned text.
    """
    words = [(match.start(), match[0], clean(match[0]).text) for match in _WORD.finditer(before)]
    if "".join(cleaned for *_, cleaned in words) != "".join(after.split()):
        return None
    return words, list(accumulate((len(cleaned) for *_, cleaned in words), initial=0))


@lru_cache(maxsize=1)
def _places_printed(text: str) -> list[int]:
    return [place for place, character in enumerate(text) if not character.isspace()]


def _in_order(run: re.Match[str]) -> str:
    """An equivalent of a run of characters, with its marks in the order of the normal form."""
    apart = "".join(unicodedata.normalize("NFD", character) for character in run[0])
    runs = groupby(apart, key=lambda character: unicodedata.combining(character) > 0)
    return "".join("".join(sorted(marks, key=unicodedata.combining)) for _, marks in runs)


def _without_invisible(text: str) -> tuple[str, dict[str, int]]:
    removed: dict[str, int] = {}
    text = _LINE_ENDS.sub("\n", text).replace("\u2029", "\n\n")
    before = len(text)
    text = _ESCAPES.sub("", text)
    if len(text) < before:
        removed["escape"] = before - len(text)
    for kind, pattern in (("control", _CONTROL), ("bidi", _BIDI), ("zero_width", _ZERO_WIDTH)):
        text, times = pattern.subn("", text)
        if times:
            removed[kind] = times
    if _JOINERS.search(text):
        before = len(text)
        text = _without_stray_joiners(text)
        if len(text) < before:
            removed["zero_width"] = removed.get("zero_width", 0) + before - len(text)
    return text, removed


def _without_stray_joiners(text: str) -> str:
    """Remove joiners that do not join anything."""
    kept: list[str] = []
    for position, character in enumerate(text):
        if character in "\u200c\u200d":
            following = text[position + 1 : position + 2]
            if not kept or not _joins(kept[-1]) or not following or not _joins(following):
                continue
        kept.append(character)
    return "".join(kept)


def _joins(character: str) -> bool:
    """Whether a joiner next to this character has a meaning: emoji, Arabic and Indic letters."""
    return (
        "\u0600" <= character <= "\u08ff"
        or "\u0900" <= character <= "\u0dff"
        or "\u1000" <= character <= "\u109f"
        or "\u2190" <= character <= "\u2bff"
        or character == "\ufe0f"
        or "\U0001f000" <= character <= "\U0001faff"
    )
