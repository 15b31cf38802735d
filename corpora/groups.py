"""Groups of related rows: a union-find whose group names do not depend on order."""

from __future__ import annotations


class Groups:
    """Rows numbered from 0, joined by common keys and by explicit matches."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._names: list[str] = []
        self._by_key: dict[str, int] = {}

    def add(self, key: str) -> int:
        """Add a row; it joins the rows added with the same key.

        Args:
            key: What it has in common with others: the digest of its text, its group's name…
        """
        row = len(self._parents)
        self._parents.append(row)
        self._names.append(key)
        first = self._by_key.setdefault(key, row)
        if first != row:
            self.join(row, first)
        return row

    def join(self, one: int, other: int) -> None:
        """Merge the groups of two rows."""
        one, other = self._root(one), self._root(other)
        if one == other:
            return
        one, other = min(one, other), max(one, other)
        self._parents[other] = one
        # The smallest key names the group, whichever row came first.
        self._names[one] = min(self._names[one], self._names[other])

    def name(self, row: int) -> str:
        """The name of a row's group."""
        return self._names[self._root(row)]

    def _root(self, row: int) -> int:
        while self._parents[row] != row:
            self._parents[row] = self._parents[self._parents[row]]
            row = self._parents[row]
        return row
