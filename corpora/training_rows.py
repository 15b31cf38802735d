"""Draws some of the training rows for learning curves: how good is a recipe with 64 labels?

The rows have an order that depends on the seed, and a draw is its beginning: the 16 rows of one
draw are among the 64 of the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from corpora.splits import position


def training_order(
    ids: Sequence[str], names: Sequence[tuple[str, ...]], seed: int
) -> tuple[list[int], int]:
    """The order in which training rows are drawn, and how many have every name once.

    First come rows with a name that none before has, so that no draw lacks a label. Where each row
    has one label, the others follow by Webster's method: each next row is of the label with the
    largest quotient n / (2k + 1), where k of its n rows are drawn. So a draw has the labels in the
    proportions of all rows, as far as whole rows allow. Rows with several names, or none, follow in
    any order. What is left open is decided by a hash of seed and id: the order of the file counts
    for nothing.

    Args:
        ids: (rows,) ids.
        names: (rows,) the names in each row's answer: its label, its labels, or the types of its
            spans.
        seed: Seed of the draw.

    Returns:
        Positions of the rows in order; how many of them, from the first, have every name.

    Example:
        >>> training_order(["a", "b", "c", "d"], [("x",), ("x",), ("x",), ("y",)], seed=0)[1]
        2

    Reference:
        Balinski and Young 1982, Fair Representation (Webster's method, also Sainte-Laguë's; a
        larger house never takes a seat away).
    """
    chance = sorted(
        range(len(ids)), key=lambda i: (position(ids[i], f"training rows {seed}"), ids[i])
    )
    seen: set[str] = set()
    cover: list[int] = []
    for i in chance:
        if not seen.issuperset(names[i]):
            seen.update(names[i])
            cover.append(i)
    first = set(cover)
    rest = [i for i in chance if i not in first]
    if all(len(of) == 1 for of in names):
        count = Counter(of[0] for of in names)
        drawn = defaultdict(lambda: 1)  # of each label, its first row
        turn: dict[int, float] = {}
        for i in rest:
            (label,) = names[i]
            turn[i] = (2 * drawn[label] + 1) / count[label]
            drawn[label] += 1
        rest.sort(key=turn.__getitem__)  # stable: chance decides between equal quotients
    return [*cover, *rest], len(cover)
