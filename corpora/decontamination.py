"""Decontamination: finds evaluation texts in training text.

Texts overlap if they share 13 consecutive words, or 26 characters in scripts without spaces, in
normal form. A shorter evaluation text must occur as a whole. Thirteen words are GPT-3's unit
(Brown et al. 2020, arXiv 2005.14165, appendix C); a Chinese word has about two characters.
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


class EvaluationTexts:
    """An index of the texts that must not be trained on.

    Args:
        texts: Raw evaluation texts, one string each (the two texts of a pair separately).
        markings: Strings that are ignored in the comparison.
        ignored: Words, in normal form, that are ignored, too.
    """

    def __init__(
        self, texts: Iterable[str], markings: Sequence[str] = (), ignored: Iterable[str] = ()
    ):
        self._ignored = frozenset(ignored)
        self._whole: set[str] = set()
        words: list[np.ndarray] = []
        characters: list[np.ndarray] = []
        self._count = 0
        for text in texts:
            normal = self._reduced(normal_form(text, markings))
            if not normal:
                continue
            self._count += 1
            self._whole.add(text_digest(text, normal))
            if is_unspaced(normal):
                characters.append(gram_hashes(character_units(normal), CHARACTERS))
            else:
                words.append(gram_hashes(word_units(normal), WORDS))
        self._words = _sorted(words)
        self._characters = _sorted(characters)

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
        if text_digest(text, normal) in self._whole:
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


def _sorted(parts: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.uint64)


def _any(hashes: np.ndarray, known: np.ndarray) -> bool:
    """Whether any hash is among the sorted `known` ones; faster than np.isin for a short text."""
    if not len(hashes) or not len(known):
        return False
    places = np.searchsorted(known, hashes)
    places[places == len(known)] = 0
    return bool(np.any(known[places] == hashes))
