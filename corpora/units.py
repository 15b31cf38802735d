"""Units above the token: words, phrases and entities, written as what starts at each token.

    text → tokens with their places ─┬→ words (blanks, or a segmenter)
                                     └→ names of a gazetteer, where they fit whole words

Everything is decided on the text that the tokens were cut from, by places in it; so an unknown
token takes nothing out of step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from corpora.gazetteer import Match, longest

# Kinds of unit; a token's number is the sum of those that start at it. `models.features` reads it.
WORD, PHRASE, ENTITY = 1, 2, 4
CASED, CAPITALISED = 8, 16  # words whose first letter has case, and those where it is a capital


def word_starts(basic: np.ndarray, places: np.ndarray, word_number: np.ndarray) -> np.ndarray:
    """Which tokens start a word of a segmented text.

    Args:
        basic: (n,) bool: tokens that start a word by blanks and punctuation, or are a CJK
            character; only those can start a segmented one.
        places: (n,) where each token begins in the text.
        word_number: (characters,) which word each character is in.

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
    ``entity``, elsewhere a phrase, elsewhere a word. Of names that overlap the leftmost counts, and
    of those the longest; a name that begins or ends within a basic unit ("art" in "start") is none.

    Args:
        basic: (n,) bool: tokens that start a word by blanks, or are a CJK character.
        words: (n,) bool: tokens that start a word as the segmenter has it.
        starts: (n,) where each token begins in the text, rising.
        ends: (n,) where it ends.
        matches: Names in the text.

    Returns:
        (n,) uint8.
    """
    last = np.append(basic[1:], True)  # tokens that end a basic unit
    first_at = {int(place): i for i, place in enumerate(starts) if basic[i]}
    behind_at = {int(place): i + 1 for i, place in enumerate(ends) if last[i]}
    names = [
        Match(first_at[match.start], behind_at[match.end], match.kind)
        for match in matches
        if match.start in first_at and match.end in behind_at
    ]
    phrases = longest(name for name in names if name.kind == "phrase")
    entities = longest(name for name in names if name.kind == "entity")
    free = [p for p in phrases if all(p.end <= e.start or e.end <= p.start for e in entities)]
    return (
        WORD * words.astype(np.uint8)
        + PHRASE * _merged(words, phrases)
        + ENTITY * _merged(words, [*entities, *free])
    ).astype(np.uint8)


def case_starts(basic: np.ndarray, starts: np.ndarray, text: str) -> np.ndarray:
    """Which tokens of a sentence start a word that has case, and which a capitalised one.

    Signs, digits and characters of scripts without case start neither.

    Args:
        basic: (n,) bool: tokens that start a word by blanks, or are a CJK character.
        starts: (n,) where each token begins in the text.
        text: As it was written, apart from blanks and accents.

    Returns:
        (n,) uint8, sums of `CASED` and `CAPITALISED`.
    """
    first = [text[place : place + 1] for place in starts]  # none behind a blank at the end
    capital = np.array([letter.isupper() or letter.istitle() for letter in first], bool)
    cased = np.array([letter.islower() for letter in first], bool) | capital
    return ((CASED * cased + CAPITALISED * capital) * basic).astype(np.uint8)


def covered(starts: np.ndarray, kind: int) -> int:
    """Tokens of a document in units of a kind that are more than one word.

    Args:
        starts: (n,) uint8 as `unit_starts` gives them.
        kind: `PHRASE` or `ENTITY`.
    """
    words, units = (starts & WORD) > 0, (starts & kind) > 0
    if not len(starts):
        return 0
    number = np.cumsum(units) - 1
    # Where a name joins words, a word starts inside the unit.
    joined = np.bincount(np.maximum(number, 0), weights=words & ~units) > 0
    return int(joined[np.maximum(number, 0)].sum())


def _merged(words: np.ndarray, names: Sequence[Match]) -> np.ndarray:
    """Word starts with each name made one unit, (n,) uint8."""
    starts = words.copy()
    for name in names:
        starts[name.start] = True
        starts[name.start + 1 : name.end] = False
        if name.end < len(starts):
            starts[name.end] = True
    return starts.astype(np.uint8)
