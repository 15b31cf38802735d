"""An n-gram language model: its settings, its tables in a file, and the loss of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.counting.array_file import map_arrays, write_arrays
from models.counting.ngrams import Order
from models.counting.packing import Packing
from models.counting.smoothing import (
    FALLBACK,
    OrderCounts,
    add_k,
    discount,
    interpolated,
    kneser_ney,
    maximum_likelihood,
    modified_discounts,
)
from models.counting.sums import KeyedSums
from models.protocols import Tokenizer

KNESER_NEY = ("interpolated_kneser_ney", "modified_kneser_ney")
_OF_COUNTS = 4  # counts of counts that discounts are made of


@dataclass(frozen=True)
class Smoothing:
    """How probabilities are made of counts.

    Attributes:
        name: ``maximum_likelihood``, ``add_k``, ``interpolated`` or one of `KNESER_NEY`.
        k: Of ``add_k``.
        share: λ of ``interpolated``.
        discounts: (order, 3) of Kneser-Ney; empty for others.
    """

    name: str
    k: float
    share: float
    discounts: np.ndarray

    def probabilities(self, orders: Sequence[OrderCounts], num_events: int) -> np.ndarray:
        """(N,) probabilities of N tokens from the counts of each order, the shortest first."""
        if self.name == "maximum_likelihood":
            return maximum_likelihood(orders)
        if self.name == "add_k":
            return add_k(orders[-1], num_events, self.k)
        if self.name == "interpolated":
            return interpolated(orders, num_events, self.share)
        return kneser_ney(orders, num_events, self.discounts.tolist())


@dataclass(frozen=True)
class NGramModel:
    """Tables of every order, and how they become probabilities.

    Args:
        orders: The shortest first.
        packing: Of the keys.
        smoothing: With its discounts.
        num_events: Number of tokens that can be next (`num_events`).
    """

    orders: Sequence[Order]
    packing: Packing
    smoothing: Smoothing
    num_events: int

    def probabilities(self, ngrams: np.ndarray) -> np.ndarray:
        """(N,) probabilities of the last tokens of n-grams after the tokens before them.

        Args:
            ngrams: (N,) keys of the highest order.
        """
        ngrams, which = np.unique(ngrams, return_inverse=True)
        found: list[OrderCounts] = []
        for order in range(self.packing.order, 0, -1):
            tables = self.orders[order - 1]
            after = tables.histories.of(self.packing.without_last(ngrams, order))
            count = tables.ngrams.of(ngrams)[:, 0]
            found.append(OrderCounts(count, after[:, 0], after[:, 1:]))
            if order > 1:
                ngrams = self.packing.without_first(ngrams, order)
        return self.smoothing.probabilities(found[::-1], self.num_events)[which]


def num_events(tokenizer: Tokenizer) -> int:
    """How many token ids can be next: those of text, [UNK] and the end of a document."""
    never = set(tokenizer.special_ids) - {tokenizer.unknown_id, tokenizer.sep_id}
    return tokenizer.vocabulary_size - len(never)


def discounts_of(
    orders: Sequence[Order], smoothing: str, given: Sequence[float] | None
) -> tuple[np.ndarray, list[int]]:
    """The discounts of every order, and the orders whose counts give none.

    Args:
        orders: The shortest first.
        smoothing: Name of the smoothing.
        given: One discount or three, for all orders; None to estimate them.

    Returns:
        (orders, 3) float64, empty without Kneser-Ney; and the orders that have `FALLBACK`.
    """
    if smoothing not in KNESER_NEY:
        return np.zeros((0, 3)), []
    modified = smoothing == "modified_kneser_ney"
    if given is not None:
        of_all = tuple(given) if modified else (given[0],) * 3
        return np.array([of_all] * len(orders)), []
    estimate = modified_discounts if modified else discount
    found = [estimate(_counts_of_counts(tables.ngrams)) for tables in orders]
    without = [order for order, each in enumerate(found, 1) if each is None]
    usual = FALLBACK[3 if modified else 1]
    return np.array([each or usual for each in found]), without


def save_orders(path: Path, orders: Sequence[Order], discounts: np.ndarray) -> None:
    """Write tables and discounts as safetensors."""
    arrays: dict[str, np.ndarray] = {"discounts": discounts} if len(discounts) else {}
    for order, tables in enumerate(orders, 1):
        for kind, table in (("ngrams", tables.ngrams), ("histories", tables.histories)):
            arrays[f"order_{order}/{kind}/keys"] = table.keys
            arrays[f"order_{order}/{kind}/counts"] = table.values
    write_arrays(path, arrays)


def map_orders(path: Path, order: int) -> tuple[list[Order], np.ndarray]:
    """Tables and discounts as memory maps.

    Args:
        path: Written by `save_orders`.
        order: The highest order.
    """
    arrays = map_arrays(path)
    found = [
        Order(_table(arrays, f"order_{k}/ngrams"), _table(arrays, f"order_{k}/histories"))
        for k in range(1, order + 1)
    ]
    return found, np.asarray(arrays.get("discounts", np.zeros((0, 3))))


def _table(arrays: Mapping[str, np.ndarray], name: str) -> KeyedSums:
    return KeyedSums(arrays[f"{name}/keys"], arrays[f"{name}/counts"])


def _counts_of_counts(table: KeyedSums) -> np.ndarray:
    """(4,) how many keys have the counts 1, 2, 3 and 4."""
    found = np.zeros(_OF_COUNTS + 2, np.int64)
    for _, values in table.blocks():
        capped = np.minimum(values[:, 0], _OF_COUNTS + 1)
        found += np.bincount(capped, minlength=len(found))
    return found[1 : _OF_COUNTS + 1]
