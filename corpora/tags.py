"""Words with a tag each, as a text with spans."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fourstage.languages import main_language

# Prefixes by scheme. BILOU says L and U for the E and S of BIOES, BMES says M for its I.
_PREFIXES = {"iob1": "IB", "iob2": "IB", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES"}
_AS_BIOES = {"L": "E", "U": "S", "M": "I"}
_ENDED = ("bioes", "bilou", "bmes")  # whose spans have a last tag
# Languages without blanks between words; Tibetan has points between syllables.
UNSPACED = ("bo", "ja", "km", "lo", "my", "th", "yue", "zh")

TAG = re.compile(r"O|[BIESLUM][-_]\S+")  # of any scheme

Words = tuple[int, int, str]  # first word, word after the last, type


class IllegalTagsError(ValueError):
    """Tags that the scheme does not allow; the message quotes no text."""


def joined(tokens: Sequence[str], language: str) -> tuple[str, list[tuple[int, int]]]:
    """Tokens as one text, and the place of each in it.

    They are joined by a space. In a script without spaces they are joined by nothing, except where
    two words in Latin letters or digits meet; single characters there are parts of one word.

    Args:
        tokens: The tokens, none empty.
        language: Language of the source.
    """
    unspaced = main_language(language) in UNSPACED
    text, places = "", []
    for number, token in enumerate(tokens):
        if number and not (unspaced and _touch(tokens[number - 1], token)):
            text += " "
        places.append((len(text), len(text) + len(token)))
        text += token
    return text, places


def _touch(left: str, right: str) -> bool:
    latin = left[-1:].isascii() and left[-1:].isalnum() and right[:1].isascii()
    return not (latin and right[:1].isalnum() and len(left) + len(right) > 2)


def spans_of_tags(tags: Sequence[str], scheme: str) -> list[Words]:
    """The spans of tagged words.

    In ``iob1`` a span begins with I-, or with B-, and one that touches another of its type with B-.
    In ``iob2`` it begins with B-. In ``bioes`` its last word has E-, a single word S- (in ``bilou``
    L- and U-); ``bmes`` is ``bioes`` with M- in place of I-.

    Args:
        tags: One per word: ``O``, or a prefix, ``-`` and the type.
        scheme: ``iob1``, ``iob2``, ``bioes``, ``bilou`` or ``bmes``.

    Raises:
        IllegalTagsError: A tag is not one of the scheme, or cannot follow the one before it.
    """
    found: list[Words] = []
    is_open, first, kind = False, 0, ""
    for number, tag in enumerate([*tags, "O"]):
        prefix, name = _parts(tag, scheme)
        goes_on = is_open and prefix in "IE" and name == kind
        if prefix in "IE" and not goes_on and scheme != "iob1":
            raise IllegalTagsError(
                f"a tag that cannot follow the one before it (tag_scheme {scheme})"
            )
        if is_open and not goes_on:
            if scheme in _ENDED:
                raise IllegalTagsError(f"a span without its last tag (tag_scheme {scheme})")
            found.append((first, number, kind))
            is_open = False
        if prefix != "O" and not goes_on:
            is_open, first, kind = True, number, name
        if prefix in "ES":
            found.append((first, number + 1, kind))
            is_open = False
    return found


def _parts(tag: str, scheme: str) -> tuple[str, str]:
    """The prefix, as in BIOES, and the type."""
    if tag == "O":
        return "O", ""
    prefix, separator, name = tag[:1], tag[1:2], tag[2:]
    if prefix not in _PREFIXES[scheme] or separator not in ("-", "_") or not name:
        raise IllegalTagsError(f"a tag that is not one of tag_scheme {scheme}")
    return _AS_BIOES.get(prefix, prefix), name
