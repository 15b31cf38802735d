"""What readers yield: documents, labelled rows and rejected records.

A location is ``file:line`` (``archive!member:line``) with the file name listed in the source, never
an absolute path, so that prepared data are the same on every machine.
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
    """One text, pair of texts, or text with choices, and its answer.

    Attributes:
        id: Unique within its split when read, within the dataset once prepared.
        text: The text, or the first of a pair.
        text_pair: The second of a pair, or None.
        label: The answer as text, canonical for its kind, so that equal answers are equal texts.
        split: The split that its file is listed under; None if Fourstage splits the data.
        location: Where it was read.
        label_type: Kind of a label's value: ``text``, ``integer``, ``float`` or ``boolean``; of
            another answer its kind.
        group: Rows of one group stay on one side of a split; None if each text is a group.
        choices: The choices, two or more; None if there are none.
        mended: What was corrected in the answer, as phrases that quote no text.
        picture: The name of its picture as it is in the file; None if there is none.
    """

    id: str
    text: str
    text_pair: str | None
    label: str
    split: Split | None
    location: str
    label_type: str = "text"
    group: str | None = None
    choices: tuple[str, ...] | None = None
    mended: tuple[str, ...] = ()
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that is not kept, or is kept with another answer.

    Attributes:
        id: Its id if it could be read, else its location.
        location: Where it was found.
        reason: A phrase, the same for the same cause, that quotes no text.
        severity: ``quarantined`` (it broke a promise), ``removed`` (by a rule) or ``mended``
            (kept, with the answer corrected).
        detail: Specifics of this record: a byte offset, the id of what it duplicates.
    """

    id: str
    location: str
    reason: str
    severity: Literal["quarantined", "removed", "mended"] = "quarantined"
    detail: str = ""
