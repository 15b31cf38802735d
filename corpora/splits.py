"""Splits by hash: a text stays on its side whatever is added, removed or reordered."""

from __future__ import annotations

import hashlib

HELDOUT = "heldout"  # what the split of a corpus is for


def position(group: str, salt: str) -> float:
    """Where a group falls in [0, 1), the same on every machine and in every run.

    Args:
        group: What must stay together: the digest of a normal form, a document's id…
        salt: What the split is for, so that two splits of one text are independent.
    """
    digest = hashlib.sha256(f"{salt}\0{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def is_heldout(group: str, share: float) -> bool:
    """Whether a document's group is held out of training.

    Args:
        group: As in `position`.
        share: Expected share held out, 0-1.
    """
    return position(group, HELDOUT) < share
