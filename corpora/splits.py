"""Splits by hash: a text stays on its side when others are added, removed or reordered."""

from __future__ import annotations

import hashlib

HELDOUT = "heldout"  # salt of a corpus's split


def position(group: str, salt: str) -> float:
    """The position of a group in [0, 1), the same on every machine and in every run.

    Args:
        group: Key of what must stay together: the digest of a normal form, a document's id…
        salt: Purpose of the split, so that two splits of one text are independent.
    """
    digest = hashlib.sha256(f"{salt}\0{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


class HeldOutSplit:
    """Chooses which documents of a corpus are held out of training, by hash.

    It takes a share of the documents. In a small corpus it takes the 20 with the lowest positions,
    but at most a fifth, because a loss on two or three documents says little. There a document may
    change sides when others are added.

    Args:
        share: Expected share held out, 0-1.
    """

    LEAST = 20  # documents
    MOST = 5  # documents for each one that is held out beyond the share

    def __init__(self, share: float):
        self._share = share
        self._count = self._within = 0
        self._nearest: list[tuple[float, int]] = []  # positions and numbers of the lowest few

    def takes(self, group: str) -> bool:
        """Whether the next document is in the held-out share.

        Args:
            group: As in `position`.
        """
        place = position(group, HELDOUT)
        self._nearest = sorted([*self._nearest, (place, self._count)])[: self.LEAST]
        self._count += 1
        self._within += place < self._share
        return place < self._share

    def others(self) -> set[int]:
        """Numbers, from 0, of the documents that a small corpus holds out beyond the share."""
        if self._count < 2:
            return set()
        wanted = max(1, min(self.LEAST, self._count // self.MOST))
        return {number for _, number in self._nearest[self._within : wanted]}
