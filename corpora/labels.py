"""Checks labels: one kind of value, no near-equal names, none unseen in training."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from corpora.cleaning import clean
from corpora.limits import MAX_LABEL_CHARACTERS
from fourstage.errors import ContractViolation, listed
from fourstage.label_order import in_order

_SHOWN = 20
# Line ends, tabs and other control characters, and those that change the writing direction.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def why_no_name(label: str) -> str:
    """Why a label cannot be a class name, without quoting it; empty if it can."""
    if len(label) > MAX_LABEL_CHARACTERS:
        return f"a label of more than {MAX_LABEL_CHARACTERS} characters"
    if _STEERING.search(label):
        return "a label with a line end or another control character"
    return ""


def check_kinds(source: str, kinds: Mapping[str, int], first: Mapping[str, str]) -> None:
    """Check that a dataset has one kind of label value.

    Args:
        source: Name of the source.
        kinds: Rows by kind (``text``, ``integer``, ``float``, ``boolean``).
        first: Location of the first row of each kind.

    Raises:
        ContractViolation: There are several kinds; nothing is cast silently.
    """
    if len(kinds) > 1:
        shown = ", ".join(
            f"{kind} ({kinds[kind]:,} rows, first at {first[kind]})" for kind in sorted(kinds)
        )
        raise ContractViolation(
            f"source {source}: expected labels of one type, got {len(kinds)}: {shown}; write "
            "them all the same way."
        )


def check_names(source: str, labels: Counter[str]) -> None:
    """Check that no two labels differ only in case, spaces, width or invisible characters.

    Args:
        source: Name of the source.
        labels: Number of rows by label.

    Raises:
        ContractViolation: Some do.
    """
    folded: dict[str, list[str]] = {}
    for label in sorted(labels, key=lambda label: (-labels[label], label)):
        folded.setdefault(_folded(label), []).append(label)
    groups = [group for group in folded.values() if len(group) > 1]
    if groups:
        shown = "; ".join(
            " ~ ".join(f"`{visible(label)}` ({labels[label]:,} rows)" for label in group[:_SHOWN])
            for group in groups[:_SHOWN]
        )
        raise ContractViolation(
            f"source {source}: {len(labels)} labels, of which some differ only in case, spaces "
            f"or width: {shown}; write each label in one way."
        )


def check_seen(source: str, train: Iterable[str], unseen: Sequence[tuple[str, str, str]]) -> None:
    """Check that evaluation rows have no label that is unseen in training.

    Args:
        source: Name of the source.
        train: The training labels.
        unseen: Label, split and id of each row with an unseen label.

    Raises:
        ContractViolation: `unseen` is not empty.
    """
    if unseen:
        found: dict[tuple[str, str], list[str]] = {}
        for label, split, row in unseen:
            found.setdefault((label, split), []).append(row)
        rows = [
            f"label `{visible(label)}`, split {split}, id {listed(ids, 3)}"
            for (label, split), ids in found.items()
        ]
        known = ", ".join(f"`{visible(label)}`" for label in in_order(train)[:50])
        raise ContractViolation(
            f"source {source}: {len(unseen):,} rows have a label that no training row has: "
            f"{listed(rows, _SHOWN, '; ')}. "
            f"Labels of train: {known or 'none'}. Correct the label, or add training rows with it."
        )


def visible(label: str) -> str:
    """A label for messages: outer spaces as ``␠``, other invisible characters escaped."""
    shown = label if len(label) <= 40 else label[:39] + "…"
    inner = shown.strip(" ")
    left = len(shown) - len(shown.lstrip(" "))
    right = len(shown) - len(inner) - left if inner else 0
    shown = "␠" * left + inner + "␠" * right
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in shown
    )


def _folded(label: str) -> str:
    text = unicodedata.normalize("NFKC", clean(label).text).casefold()
    return " ".join(text.split())
