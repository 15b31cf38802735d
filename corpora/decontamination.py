"""Decontamination: finds evaluation texts in training text.

Texts overlap if they share 13 consecutive words, or 26 characters in scripts without spaces, in
normal form. A shorter evaluation text must occur as a whole. Thirteen words are GPT-3's unit
(Brown et al. 2020, arXiv 2005.14165, appendix C); a Chinese word has about two characters. As
there, a run that is in more than ten texts is ignored: it is a footer or a set phrase. They count
documents of the corpus; here evaluation texts are counted, so that the corpus is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from corpora.identity import (
    character_units,
    gram_hashes,
    is_unspaced,
    normal_form,
    text_digest,
    word_units,
)

WORDS = 13
CHARACTERS = 26
MOST_TEXTS = 10  # evaluation texts that a run may be in


class Variant(str):
    """Texts in another form, such as those of a pair together: found, too, but not counted anew.

    A passage is in as many pairs as it has questions.
    """


class EvaluationTexts:
    """An index of the texts that must not be trained on.

    Args:
        texts: Raw evaluation texts, one string each (the two texts of a pair separately), and
            variants of them.
        markings: Strings that are ignored in the comparison.
        ignored: Words, in normal form, that are ignored, too.
    """

    def __init__(
        self, texts: Iterable[str], markings: Sequence[str] = (), ignored: Iterable[str] = ()
    ):
        self._ignored = frozenset(ignored)
        self._whole: set[str] = set()
        words, characters = _Runs(), _Runs()
        counted: set[str] = set()
        self._count = 0
        for text in texts:
            normal = self._reduced(normal_form(text, markings))
            if not normal:
                continue
            self._count += 1
            digest = _digest(text, normal)
            # The text of several rows, such as the passage of several questions, counts once.
            new = not isinstance(text, Variant) and digest not in counted
            if digest in self._whole and not new:
                continue
            self._whole.add(digest)
            if new:
                counted.add(digest)
            if is_unspaced(normal):
                characters.add(gram_hashes(character_units(normal), CHARACTERS), new)
            else:
                words.add(gram_hashes(word_units(normal), WORDS), new)
        self._words = words.rare()
        self._characters = characters.rare()

    def __len__(self) -> int:
        return self._count

    def touches(self, text: str, normal: str) -> bool:
        """Whether a training text contains an evaluation text, or a long enough run of one.

        Args:
            text: The training text.
            normal: Its normal form, without markings.
        """
        if not self._count:
            return False
        normal = self._reduced(normal)
        if _digest(text, normal) in self._whole:
            return True
        if len(self._words) and _any(gram_hashes(word_units(normal), WORDS), self._words):
            return True
        return bool(
            len(self._characters)
            and not normal.isascii()
            and _any(gram_hashes(character_units(normal), CHARACTERS), self._characters)
        )

    def _reduced(self, normal: str) -> str:
        if not self._ignored:
            return normal
        return " ".join(word for word in normal.split() if word not in self._ignored)


def _digest(text: str, normal: str) -> str:
    """Digest of a whole text. There is a space where a marking was, maybe inside a word."""
    return text_digest(text, normal.replace(" ", ""))


class _Runs:
    """Hashes of the runs of each text."""

    def __init__(self):
        self._counted = [np.empty(0, dtype=np.uint64)]
        self._others = [np.empty(0, dtype=np.uint64)]

    def add(self, hashes: np.ndarray, counted: bool) -> None:
        (self._counted if counted else self._others).append(np.unique(hashes))

    def rare(self) -> np.ndarray:
        """Those that at most `MOST_TEXTS` of the counted texts have, sorted."""
        runs, times = np.unique(np.concatenate(self._counted), return_counts=True)
        known = np.union1d(runs, np.concatenate(self._others))
        return np.setdiff1d(known, runs[times > MOST_TEXTS], assume_unique=True)


def _any(hashes: np.ndarray, known: np.ndarray) -> bool:
    """Whether any hash is among the sorted `known` ones; faster than np.isin for a short text."""
    if not len(hashes) or not len(known):
        return False
    places = np.searchsorted(known, hashes)
    places[places == len(known)] = 0
    return bool(np.any(known[places] == hashes))
