"""Sentinels: special tokens, each of which stands for one hidden span of a text (T5).

They are on top of the vocabulary; the first one has the highest id:

    …, <extra_id_2>, <extra_id_1>, <extra_id_0>
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, takewhile

NAME = "<extra_id_{}>"


def sentinel_names(number: int) -> list[str]:
    """The names of so many sentinels, in the order of their ids."""
    return [NAME.format(i) for i in reversed(range(number))]


def sentinel_ids(ids: Mapping[str, int]) -> tuple[int, ...]:
    """The ids of the sentinels that a vocabulary {token: id} has, the first one first."""
    names = takewhile(ids.__contains__, map(NAME.format, count()))
    return tuple(ids[name] for name in names)
