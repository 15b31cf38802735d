"""What readers hand on: documents, labelled rows, and what could not become either.

A location is ``file:line`` (``archive!member:line``) with the file's name as the source lists it,
never an absolute path, so that prepared data are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Document:
    """One unlabelled text."""

    id: str
    text: str
    location: str


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text, or pair of texts.

    Attributes:
        id: Unique within its split as read, within the dataset once prepared.
        text: The text, or the first of a pair.
        text_pair: The second of a pair, or None.
        label: As text; what kind of value it was in the file is `label_type`.
        split: The split its file was listed under; None where the source leaves splitting to us.
        location: Where it was read.
        label_type: ``text``, ``integer``, ``float``, ``boolean`` or ``structure`` (a list or
            mapping, in `label` as canonical JSON).
        group: Rows of one group never fall on two sides of a split; None where each text is its
            own.
    """

    id: str
    text: str
    text_pair: str | None
    label: str
    split: Split | None
    location: str
    label_type: str = "text"
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was not read.

    Attributes:
        id: Its id where one was legible, else its location.
        location: Where it stands.
        reason: One phrase, equal for equal causes, with nothing of the text in it.
        severity: ``quarantined`` (it broke a promise) or ``removed`` (a rule took it out).
        detail: What is particular to this record: a byte offset, the id of what it repeats.
    """

    id: str
    location: str
    reason: str
    severity: Literal["quarantined", "removed"] = "quarantined"
    detail: str = ""
