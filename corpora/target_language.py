"""Whether a text to write is in the language of its like, or in that of what it is written from.

Two languages of one script are told apart by their trigrams of characters. Both profiles are those
of the training rows themselves, so that no table of languages is needed. A row is judged by the
other rows: its own trigrams are taken out. What all rows do alike is not found, such as columns
that are swapped throughout, and nor is a third language for certain.

Reference:
    Dunning 1994, "Statistical Identification of Language", CRL MCCS-94-273, section 4: the
    likelihood of a text's trigrams of characters under each language, one added to every count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from corpora.identity import normal_form
from corpora.profile import script
from fourstage.languages import main_language

ENOUGH_ROWS = 50  # training rows from which profiles are told apart
ENOUGH = 20  # trigrams of a text that is judged: a name alone may be in either language


def are_told_apart(language: str, answer_language: str | None) -> bool:
    """Whether texts and targets are in two languages of one script."""
    if answer_language is None or main_language(language) == main_language(answer_language):
        return False
    return script(language) == script(answer_language)


class TrigramProfiles:
    """Trigrams of the training rows' texts, and of their targets.

    Args:
        rows: (text, its references) of the training rows.
    """

    def __init__(self, rows: Iterable[tuple[str, Sequence[str]]]):
        self._texts: Counter[str] = Counter()
        self._targets: Counter[str] = Counter()
        self._rows = 0
        for text, targets in rows:
            self._texts.update(_trigrams(text))
            self._targets.update(_all_trigrams(targets))
            self._rows += 1
        self._totals = self._texts.total(), self._targets.total()
        self._kinds = len(self._texts.keys() | self._targets.keys())

    def margin(self, text: str, targets: Sequence[str], counted: bool) -> float:
        """Nats by which a trigram of a reference is likelier among targets than among texts.

        Args:
            text: The row's text.
            targets: Its references.
            counted: Whether it is a training row, whose own trigrams are in the profiles.

        Returns:
            The mean over the trigrams of the reference for which it is the lowest; below 0 it reads
            like a text. 0 where all references are too short, or the training rows too few.
        """
        if self._rows < ENOUGH_ROWS:
            return 0.0
        judged = [each for each in map(_trigrams, targets) if each.total() >= ENOUGH]
        nothing: Counter[str] = Counter()
        own_text, own = (_trigrams(text), _all_trigrams(targets)) if counted else (nothing, nothing)
        in_texts = self._totals[0] - own_text.total() + self._kinds
        in_targets = self._totals[1] - own.total() + self._kinds
        shift = math.log(in_targets / in_texts)
        return min(
            (
                sum(
                    times
                    * math.log(
                        (self._targets[trigram] - own[trigram] + 1)
                        / (self._texts[trigram] - own_text[trigram] + 1)
                    )
                    for trigram, times in each.items()
                )
                / each.total()
                - shift
                for each in judged
            ),
            default=0.0,
        )


def _trigrams(text: str) -> Counter[str]:
    """The trigrams of a text without case and punctuation, with a blank at both ends."""
    line = f" {normal_form(text)} "
    return Counter(line[i : i + 3] for i in range(len(line) - 2))


def _all_trigrams(texts: Sequence[str]) -> Counter[str]:
    return sum(map(_trigrams, texts), Counter())
