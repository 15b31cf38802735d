"""Evaluation rows of one dataset that training rows of another, learnt with it, must not repeat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpora.identity import normal_form, text_digest

Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """A row of dev or test.

    Attributes:
        place: Its split and id, for messages: ``("test of multi30k_en_de", "12")``.
        text: Its text.
        text_pair: Its second text.
        targets: The texts to write, where its answer is one.
    """

    place: Place
    text: str
    text_pair: str | None
    targets: tuple[str, ...] = ()


class EvaluationRows:
    """Look-up of training rows that give an evaluation row away.

    A row does if its text (or pair) is one to be evaluated, or a target there; or if its own target
    is such a text, as in translation the other way. Targets that equal targets are none: many rows
    have the same label.

    Args:
        rows: The evaluation rows.
        markings: Strings to ignore in the texts of `rows`.
    """

    def __init__(self, rows: Iterable[EvaluationRow], markings: Sequence[str] = ()):
        self._texts: dict[str, Place] = {}
        self._targets: dict[str, Place] = {}
        for row in rows:
            self._texts.setdefault(_digest(row.text, row.text_pair, markings), row.place)
            for target in row.targets:
                self._targets.setdefault(_digest(target), row.place)

    def given_away(
        self,
        text: str,
        text_pair: str | None,
        targets: Iterable[str] = (),
        markings: Sequence[str] = (),
    ) -> Place | None:
        """The place of an evaluation row that a training row gives away; None for none.

        Args:
            text: The training row's text.
            text_pair: Its second text.
            targets: The texts to write, where its answer is one.
            markings: Strings to ignore in `text`.
        """
        own = _digest(text, text_pair, markings)
        found = self._texts.get(own) or self._targets.get(own)
        return found or next(
            filter(None, (self._texts.get(_digest(each)) for each in targets)), None
        )


def _digest(text: str, pair: str | None = None, markings: Sequence[str] = ()) -> str:
    # A marking may be inside a word, so spaces are ignored.
    return text_digest(text, normal_form(text, markings).replace(" ", ""), pair)
