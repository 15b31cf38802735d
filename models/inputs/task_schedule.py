"""Task schedule: where objectives alternate, what each update reads and whom it trains.

Objectives that choose segments of their own can't score the same rows, so they take turns: an
update belongs to one group of them. Whose turn it is depends on the groups' shares and the number
of the update alone; so resuming stays an integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, repeat

from models.inputs.batches import Batches
from models.protocols import Batch


def whose_turn(shares: Sequence[float]) -> Iterator[int]:
    """Whose turn each update is, without end.

    After any number of updates each has had its share of them to within one. Of those whose share
    so far is not yet spent, it is the turn of the one that would first fall a whole update behind.

    Args:
        shares: Of the updates, summing to 1.

    Reference:
        Tijdeman 1980, The chairman assignment problem, Discrete Mathematics 32, 323-330.
    """
    if len(shares) == 1:
        yield from repeat(0)
    least = 1 / (2 * len(shares) - 2)
    had = [0] * len(shares)
    for number in count(1):
        owed = [number * share - turns for share, turns in zip(shares, had, strict=True)]
        waiting = [i for i, due in enumerate(owed) if due >= least - 1e-9]  # 1e-9: 0.1 is rounded
        turn = min(waiting, key=lambda i: (1 - least - owed[i]) / shares[i])
        had[turn] += 1
        yield turn


class TaskSchedule:
    """What the updates of a phase read, one group of objectives at a time.

    A stage whose objectives all score the same rows has one group, whose turn it always is.

    Attributes:
        groups: {name: batches}.
        shares: {name: share of the updates}, summing to 1.

    Args:
        groups: The same.
        weights: Of the updates, relative to each other.
    """

    def __init__(self, groups: Mapping[str, Batches], weights: Mapping[str, float]):
        total = sum(weights[name] for name in groups)
        self.groups = dict(groups)
        self.shares = {name: weights[name] / total for name in groups}
        self._names = list(groups)
        self._coming = whose_turn(list(self.shares.values()))
        self._order: list[int] = []

    @property
    def tokens_per_batch(self) -> float:
        """Real tokens an update reads, on average."""
        return sum(self.shares[name] * feed.tokens_per_batch for name, feed in self.groups.items())

    def batches_in_pass(self) -> float:
        """Updates until every group has read the longest corpus once."""
        return max(feed.batches_in_pass() / self.shares[name] for name, feed in self.groups.items())

    def name(self, k: int) -> str:
        """Whose turn update `k` is."""
        return self._names[self._until(k + 1)[k]]

    def counts(self, start: int, stop: int) -> dict[str, int]:
        """How many of the updates from `start` to `stop`, less the last, are each group's."""
        found = Counter(islice(self._until(stop), start, stop))
        return {name: found[i] for i, name in enumerate(self._names)}

    def iterate(self, start: int = 0) -> Iterator[tuple[str, Batch]]:
        """From update `start` on: whose turn it is, and its batch."""
        done = self.counts(0, start)
        streams = {name: feed.iterate(done[name]) for name, feed in self.groups.items()}
        for k in count(start):
            name = self.name(k)
            yield name, next(streams[name])

    def passes(self, updates: int) -> dict[str, float]:
        """How often each corpus has been read after so many updates, by all groups together."""
        read: Counter[str] = Counter()
        for name, number in self.counts(0, updates).items():
            read.update(self.groups[name].passes(number))
        return dict(read)

    def _until(self, stop: int) -> list[int]:
        """Whose turn each update is, up to `stop` at least."""
        self._order += islice(self._coming, max(0, stop - len(self._order)))
        return self._order
