"""Units above the token: words, phrases and entities, stored as the kinds that start at each token.

    text → tokens with their offsets ─┬→ words (spaces, or a segmenter)
                                      └→ names of a gazetteer that fit whole words

All decisions use offsets in the original text, so unknown tokens cannot misalign them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from corpora.gazetteer import Match, longest, whole

# Kinds of unit as bits; a token has the sum of those that start at it. Read by `models.features`.
WORD, PHRASE, ENTITY = 1, 2, 4
CASED, CAPITALISED = 8, 16  # words whose first letter has case; those where it is a capital
ENTITY_UNIT = 256  # times this, the number of the entity that is named from there on


def word_starts(basic: np.ndarray, places: np.ndarray, word_number: np.ndarray) -> np.ndarray:
    """Which tokens start a word of a segmented text.

    Args:
        basic: (n,) bool: tokens that start a word by whitespace and punctuation, or are a CJK
            character; only these can start a segmented word.
        places: (n,) offset of each token in the text.
        word_number: (characters,) number of the word that contains each character.

    Returns:
        (n,) bool.
    """
    number = word_number[places]
    starts = np.ones(len(basic), bool)
    starts[1:] = number[1:] != number[:-1]
    return starts & basic


def unit_starts(
    basic: np.ndarray,
    words: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    matches: Iterable[Match],
) -> np.ndarray:
    """Which kinds of unit start at each token of a sentence.

    A phrase unit is a name of kind ``phrase``, elsewhere a word. An entity unit is a name of kind
    ``entity``, elsewhere a phrase, elsewhere a word. Of overlapping names the leftmost counts, and
    of those the longest. A name that begins or ends inside a basic unit ("art" in "start") does not
    count.

    Args:
        basic: (n,) bool: tokens that start a word by whitespace, or are a CJK character.
        words: (n,) bool: tokens that start a word according to the segmenter.
        starts: (n,) offset of each token in the text, ascending.
        ends: (n,) offset of its end.
        matches: Names in the text.

    Returns:
        (n,) uint8.
    """
    names = whole(basic, starts, ends, matches)
    phrases = longest(name for name in names if name.kind == "phrase")
    entities = longest(name for name in names if name.kind == "entity")
    # A phrase that overlaps an entity gives way to it.
    free = [p for p in phrases if all(p.end <= e.start or e.end <= p.start for e in entities)]
    return (
        WORD * words.astype(np.uint8)
        + PHRASE * _merged(words, phrases)
        + ENTITY * _merged(words, [*entities, *free])
    ).astype(np.uint8)


def case_starts(basic: np.ndarray, starts: np.ndarray, text: str) -> np.ndarray:
    """Which tokens of a sentence start a word with case, and which a capitalised one.

    Punctuation, digits and characters of scripts without case start neither.

    Args:
        basic: (n,) bool: tokens that start a word by whitespace, or are a CJK character.
        starts: (n,) offset of each token in the text.
        text: The text with its original case; whitespace and accents may be normalised.

    Returns:
        (n,) uint8, sums of `CASED` and `CAPITALISED`.
    """
    first = [text[place : place + 1] for place in starts]  # empty after a space at the end
    capital = np.array([letter.isupper() or letter.istitle() for letter in first], bool)
    cased = np.array([letter.islower() for letter in first], bool) | capital
    return ((CASED * cased + CAPITALISED * capital) * basic).astype(np.uint8)


def covered(starts: np.ndarray, kind: int) -> int:
    """Number of tokens of a document in units of a kind that span more than one word.

    Args:
        starts: (n,) uint8 as returned by `unit_starts`.
        kind: `PHRASE` or `ENTITY`.
    """
    words, units = (starts & WORD) > 0, (starts & kind) > 0
    if not len(starts):
        return 0
    number = np.cumsum(units) - 1
    # A unit spans several words if a word starts inside it.
    joined = np.bincount(np.maximum(number, 0), weights=words & ~units) > 0
    return int(joined[np.maximum(number, 0)].sum())


def _merged(words: np.ndarray, names: Sequence[Match]) -> np.ndarray:
    """Word starts, with each name merged into one unit, (n,) uint8."""
    starts = words.copy()
    for name in names:
        starts[name.start] = True
        starts[name.start + 1 : name.end] = False
        if name.end < len(starts):
            starts[name.end] = True
    return starts.astype(np.uint8)
