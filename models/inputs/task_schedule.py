"""Task schedule: the group of objectives, and the batch, of each update where objectives alternate.

Objectives that each choose their own segments can't score the same rows, so they take turns: each
update belongs to one group of objectives. The group depends only on the groups' shares and the
number of the update. To resume, only that number is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, repeat

from models.inputs.batches import Batches
from models.protocols import Batch


def whose_turn(shares: Sequence[float]) -> Iterator[int]:
    """The group of each update, from 0, endless.

    After any number of updates, each group's count is within one update of its share. Among the
    groups that are behind their share, the one whose lag would first reach the limit is next.
    Shares of 0.5, 0.25, 0.25 give 0, 1, 2, 0, 0, 1, 2, 0, …

    Args:
        shares: Shares of the updates, summing to 1.

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
    """The batches of a phase, each for one group of objectives.

    A stage whose objectives all score the same rows has a single group.

    Attributes:
        groups: {name: batches}.
        shares: {name: share of the updates}, summing to 1.

    Args:
        groups: {name: batches}.
        weights: {name: relative share of the updates}.
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
        """Mean number of tokens per update, without padding."""
        return sum(self.shares[name] * feed.tokens_per_batch for name, feed in self.groups.items())

    def batches_in_pass(self) -> float:
        """Updates until every group has read the longest corpus once."""
        return max(feed.batches_in_pass() / self.shares[name] for name, feed in self.groups.items())

    def name(self, k: int) -> str:
        """The group of update `k`."""
        return self._names[self._until(k + 1)[k]]

    def counts(self, start: int, stop: int) -> dict[str, int]:
        """{group: its number of updates} in [start, stop)."""
        found = Counter(islice(self._until(stop), start, stop))
        return {name: found[i] for i, name in enumerate(self._names)}

    def iterate(self, start: int = 0) -> Iterator[tuple[str, Batch]]:
        """(group, batch) of each update from `start` on."""
        done = self.counts(0, start)
        streams = {name: feed.iterate(done[name]) for name, feed in self.groups.items()}
        for k in count(start):
            name = self.name(k)
            yield name, next(streams[name])

    def passes(self, updates: int) -> dict[str, float]:
        """{corpus: how often all groups together have read it} after a number of updates."""
        read: Counter[str] = Counter()
        for name, number in self.counts(0, updates).items():
            read.update(self.groups[name].passes(number))
        return dict(read)

    def _until(self, stop: int) -> list[int]:
        """The groups of at least the updates before `stop`."""
        self._order += islice(self._coming, max(0, stop - len(self._order)))
        return self._order
