"""A dataset's answers in words, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class WrittenRow(Protocol):
    """A row as the dataset has it (`corpora.prepared.PreparedRow`)."""

    @property
    def text(self) -> str:
        """Its text."""
        ...

    @property
    def text_pair(self) -> str | None:
        """Its second text."""
        ...

    @property
    def label(self) -> str:
        """The correct answer."""
        ...

    @property
    def choices(self) -> tuple[str, ...] | None:
        """The texts to choose from."""
        ...


@dataclass(frozen=True)
class Wording:
    """What the answers of a dataset's rows are called in a prompt.

    Attributes:
        kind: ``label``, ``choice`` or ``text``.
        names: The labels, for ``label``.
        verbalisers: Words for labels, by label; a label without words is written as it is.

    Raises:
        ValueError: There are words for something that is no label, or two labels share them.
    """

    kind: str
    names: tuple[str, ...] = ()
    verbalisers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.verbalisers) - set(self.names)):
            raise ValueError(
                f"verbalisers: expected labels of the dataset ({', '.join(self.names)}), got"
                f" {', '.join(unknown)}"
            )
        if len(set(self._words())) < len(self.names):
            raise ValueError("verbalisers: expected other words for each label, got some twice")

    def _words(self) -> tuple[str, ...]:
        return tuple(self.verbalisers.get(name, name) for name in self.names)

    def values(self, row: WrittenRow) -> dict[str, str]:
        """The fields of a template."""
        return {"text": row.text, "text_pair": row.text_pair or ""}

    def candidates(self, row: WrittenRow) -> tuple[str, ...]:
        """The answers to choose from, in words; none for ``text``."""
        return self._words() if self.kind == "label" else row.choices or ()

    def right(self, row: WrittenRow) -> str:
        """The correct answer in words; of several references the first."""
        if self.kind == "label":
            return self.verbalisers.get(row.label, row.label)
        if self.kind == "choice":
            return (row.choices or ())[int(row.label)]
        from models.answers.text import texts_of  # with its metrics, which labels do not need

        return texts_of(row.label)[0]

    def chosen(self, number: int) -> str:
        """A candidate, by its number, as the dataset writes it."""
        return self.names[number] if self.kind == "label" else str(number)

    def written(self, row: WrittenRow, text: str, spelled: Mapping[str, str] | None = None) -> str:
        """A text that was written, as the dataset would write that answer.

        Of labels and choices the one with these words, letter case aside. Without one the answer is
        wrong: no label, or the number after the last choice.

        Args:
            row: The row.
            text: What was written.
            spelled: How the network would write candidates, by candidate, where its tokenizer
                changes them: ``it ' s`` for ``it's``.
        """
        if self.kind == "text":
            return json.dumps([text], ensure_ascii=False)
        own = spelled or {}
        words = [own.get(each, each).strip().casefold() for each in self.candidates(row)]
        if text.casefold() in words:
            return self.chosen(words.index(text.casefold()))
        return "" if self.kind == "label" else str(len(words))
