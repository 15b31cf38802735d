"""The n-grams of a corpus: running text, counts of the longest, and tables of every order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.counting.packing import Packing
from models.counting.sums import MOST, KeyedSums, summed
from models.protocols import TokenisedCorpus

STREAM = 1_000_000  # tokens of text read at a time


@dataclass(frozen=True)
class Order:
    """What was counted of n-grams of one length.

    Attributes:
        ngrams: (n, 1) count of each.
        histories: (h, 4) of each n-gram's tokens but the last: the sum of the counts of all that
            follow, and how many of these were counted once, twice, and more often.
    """

    ngrams: KeyedSums
    histories: KeyedSums


@dataclass(frozen=True)
class RunningText:
    """Documents as running text: before each, order - 1 begin tokens; after it, the end token.

    Attributes:
        tokens: (L,) token ids.
        lengths: (d,) tokens of each document, with its end.
    """

    tokens: np.ndarray
    lengths: np.ndarray

    def ngrams(self, packing: Packing) -> np.ndarray:
        """(tokens to predict,) keys of the n-gram that ends at each token but the begin tokens.

        By their places, for the begin and the end of a document may be one token, as GPT-2's are.
        """
        keys = packing.ngrams(self.tokens)
        # A document, then the begin tokens of the next one.
        runs = np.full((len(self.lengths), 2), packing.order - 1)
        runs[:, 0] = self.lengths
        predicted = np.tile([True, False], len(self.lengths)).repeat(runs.ravel())
        return keys[predicted[: len(keys)]]


def texts(
    corpus: TokenisedCorpus, order: int, begin_id: int, end_id: int, size: int = STREAM
) -> Iterator[RunningText]:
    """The documents of a corpus that have tokens, as `RunningText` of about `size` tokens each."""
    begin, end = np.full(order - 1, begin_id, np.int32), np.array([end_id], np.int32)
    parts: list[np.ndarray] = []
    lengths: list[int] = []
    held = 0
    for i in np.flatnonzero(corpus.lengths).tolist():
        ids, _, _ = corpus.document(i)
        parts += [begin, ids, end]
        lengths.append(len(ids) + 1)
        held += len(ids)
        if held >= size:
            yield RunningText(np.concatenate(parts), np.array(lengths))
            parts, lengths, held = [], [], 0
    if lengths:
        yield RunningText(np.concatenate(parts), np.array(lengths))


def orders(
    longest: KeyedSums, packing: Packing, folder: Path, *, continuations: bool, most: int = MOST
) -> list[Order]:
    """Tables of all orders, from those of the longest n-grams, the shortest first.

    Every token that is predicted ends exactly one of the longest n-grams, so those of a lower order
    are counted by leaving out the oldest token.

    Args:
        longest: (n, 1) counts of n-grams of the highest order.
        packing: Of the keys.
        folder: For what does not fit in memory.
        continuations: Whether lower orders count the different tokens before an n-gram, as
            Kneser-Ney does, in place of its occurrences.
        most: As of `summed`.
    """
    found: list[Order] = []
    ngrams = longest
    for order in range(packing.order, 0, -1):
        own = folder / f"order-{order}"
        if order < packing.order:
            ngrams = summed(_shorter(ngrams, packing, order + 1, continuations), own, most=most)
        histories = summed(_histories(ngrams, packing, order), own / "histories", most=most)
        found.append(Order(ngrams, histories))
    return found[::-1]


def _shorter(
    table: KeyedSums, packing: Packing, order: int, continuations: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for keys, values in table.blocks(STREAM):
        counted = np.ones_like(values) if continuations else values
        yield packing.without_first(keys, order), counted


def _histories(
    table: KeyedSums, packing: Packing, order: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for keys, values in table.blocks(STREAM):
        kinds = [values == 1, values == 2, values > 2]
        yield packing.without_last(keys, order), np.concatenate([values, *kinds], axis=1)
