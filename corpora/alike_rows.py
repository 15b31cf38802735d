"""Rows with near-duplicate texts, which stay on one side of a split that we make.

Likeness is passed on: rows that are like one row are in one group. A passage that many rows share,
such as a footer, therefore puts them all into one group, and nothing is left to be carved. Where a
group gets that large, rows are grouped anew, without what many of them have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from corpora.identity import text_digest
from corpora.near_duplicates import NearDuplicates, ShingleCounts, shingles

# Passages at least this similar stay on one side: more than copies only.
GROUP_SIMILARITY = 0.5
LENGTHS = (3, 3)  # words, characters of a shingle
# A shingle is left out if more than this share of the texts has it, of at least so many rows.
COMMON, LEAST_ROWS = 0.05, 100


def group_index(counts: ShingleCounts | None = None, most: int = 0) -> NearDuplicates:
    """An empty index of texts that finds those alike enough for one group.

    Args:
        counts: In how many texts each shingle is; None leaves none out.
        most: Texts that may have a shingle; those of more are left out.
    """
    return NearDuplicates(GROUP_SIMILARITY, *LENGTHS, bands=32, counts=counts, most=most)


class AlikeRows:
    """The groups of rows whose texts are near duplicates, by the rows' keys.

    Args:
        largest: Share of the rows above which a group counts as too large.
    """

    def __init__(self, largest: float):
        self._largest = largest
        self._pass = _Pass(group_index())

    def add(self, key: str, text: str) -> None:
        """Add a row.

        Args:
            key: What it shares with rows that are in one group anyway.
            text: All that it says, in normal form.
        """
        self._pass.add(key, text)

    def groups(self, again: Callable[[], Iterable[tuple[str, str]]]) -> Iterator[list[str]]:
        """The keys of each group of several.

        Args:
            again: The rows that were added, as they were.
        """
        rows = len(self._pass.keys)
        if rows >= LEAST_ROWS and self._pass.largest() > self._largest * rows:
            counts, seen = ShingleCounts(), set[str]()
            for _, text in again():
                if (digest := text_digest(text, text)) not in seen:
                    seen.add(digest)
                    counts.add(shingles(text, *LENGTHS))
            self._pass = _Pass(group_index(counts, int(COMMON * len(seen))))
            for key, text in again():
                self._pass.add(key, text)
        return self._pass.groups()


class _Pass:
    """Rows grouped by one index."""

    def __init__(self, index: NearDuplicates):
        from scipy.cluster.hierarchy import DisjointSet

        self._index = index
        self._groups = DisjointSet()
        self.keys: list[str] = []  # of the rows, in their order

    def add(self, key: str, text: str) -> None:
        self._groups.add(key)
        for match in self._index.matches_and_add(text):
            self._groups.merge(key, self.keys[match])
        self.keys.append(key)

    def groups(self) -> Iterator[list[str]]:
        return (sorted(group) for group in self._groups.subsets() if len(group) > 1)

    def largest(self) -> int:
        """Rows of the largest group that has more than one key."""
        times = Counter(self.keys)
        return max((sum(times[key] for key in group) for group in self.groups()), default=0)
