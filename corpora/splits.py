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


class HeldOut:
    """Chooses which documents of a corpus are held out of training, by hash.

    A share of them; in a corpus of few documents the 20 that come first, though at most a fifth,
    since a loss on two or three documents says little. There a document may change sides when
    others are added.

    Args:
        share: Expected share held out, 0-1.
    """

    LEAST = 20  # documents
    MOST = 5  # at least so many documents to one that is held out beyond the share

    def __init__(self, share: float):
        self._share = share
        self._count = self._within = 0
        self._nearest: list[tuple[float, int]] = []  # places and numbers of the first few

    def takes(self, group: str) -> bool:
        """Whether the next document is within the share.

        Args:
            group: As in `position`.
        """
        place = position(group, HELDOUT)
        self._nearest = sorted([*self._nearest, (place, self._count)])[: self.LEAST]
        self._count += 1
        self._within += place < self._share
        return place < self._share

    def others(self) -> set[int]:
        """Numbers of the documents, from 0, that are held out as well: in a small corpus."""
        if self._count < 2:
            return set()
        wanted = max(1, min(self.LEAST, self._count // self.MOST))
        return {number for _, number in self._nearest[self._within : wanted]}
