"""Noise that changes a text's length: parts are masked, left out or moved (BART).

    whole       a b c d e . f g h .
    masked      a _ c d _ . f g h .         mask_tokens: one [MASK] a token
    deleted     a c d . f g h .             delete_tokens
    infilled    a _ e . f _ g _ .           infill: one [MASK] a span, also where nothing is hidden
    permuted    f g h . a b c d e .         permute_sentences
    rotated     d e . f g h . a b c         rotate

Pure functions of a text and a random generator, which can follow one another. Each token knows its
place in the whole text, so that in the end it is known which are hidden.

Reference:
    Lewis et al. 2020, arXiv 1910.13461, 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NOWHERE = -1  # place of a [MASK]


@dataclass(frozen=True)
class Damaged:
    """A text that noise has changed.

    Attributes:
        ids: (m,) int32 token ids.
        places: (m,) int64 place of each in the whole text, `NOWHERE` for a [MASK].
    """

    ids: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def taken(self, order: np.ndarray) -> Damaged:
        """Its tokens at some positions, in that order."""
        return Damaged(self.ids[order], self.places[order])

    def hidden(self, length: int) -> np.ndarray:
        """(length,) bool: which tokens of the whole text it does not have any more."""
        found = np.ones(length, bool)
        found[self.places[self.places != NOWHERE]] = False
        return found


def whole(ids: np.ndarray) -> Damaged:
    """A text without noise, of (n,) token ids."""
    return Damaged(ids, np.arange(len(ids)))


def wanted(rate: float, length: int) -> int:
    """Number of tokens to choose: rate × length, rounded up."""
    return math.ceil(round(rate * length, 6))


def mask_tokens(text: Damaged, rate: float, mask_id: int, rng: np.random.Generator) -> Damaged:
    """Replace a share of the tokens by a [MASK] each."""
    chosen = rng.permutation(len(text))[: wanted(rate, len(text))]
    ids, places = text.ids.copy(), text.places.copy()
    ids[chosen], places[chosen] = mask_id, NOWHERE
    return Damaged(ids, places)


def delete_tokens(text: Damaged, rate: float, rng: np.random.Generator) -> Damaged:
    """Leave a share of the tokens out; nothing shows where."""
    left_out = rng.permutation(len(text))[: wanted(rate, len(text))]
    return text.taken(np.delete(np.arange(len(text)), left_out))


def infill(
    text: Damaged, rate: float, mean: float, mask_id: int, rng: np.random.Generator
) -> Damaged:
    """Replace spans by a single [MASK] each.

    All arrangements of the spans among the tokens that stay are equally likely. Spans do not
    overlap, so exactly the share of tokens is hidden; those of the authors' code may.

    Args:
        text: The text.
        rate: Share of the tokens in spans, 0-1.
        mean: λ of the Poisson distribution of a span's length.
        mask_id: Id of [MASK].
        rng: Random generator.
    """
    budget = wanted(rate, len(text))
    if not budget:
        return text
    lengths = span_lengths(budget, mean, rng)
    items = len(text) - budget + len(lengths)  # tokens that stay, and spans
    spans = np.sort(rng.permutation(items)[: len(lengths)])  # their places among all items
    covered = np.ones(items, np.int64)  # tokens of the text that each item stands for
    covered[spans] = lengths[rng.permutation(len(lengths))]
    starts = np.minimum(np.cumsum(covered) - covered, len(text) - 1)
    ids, places = text.ids[starts], text.places[starts]
    ids[spans], places[spans] = mask_id, NOWHERE
    return Damaged(ids, places)


def span_lengths(budget: int, mean: float, rng: np.random.Generator) -> np.ndarray:
    """Lengths from a Poisson distribution until they reach `budget`; the last one is cut.

    A span of length 0 hides nothing: its [MASK] is put in between. Surplus ones are left out, so
    that a text does not grow.

    Returns:
        (at most `budget`,) int64 with the sum `budget`.
    """
    lengths = rng.poisson(mean, budget)
    while lengths.sum() < budget:
        lengths = np.concatenate([lengths, rng.poisson(mean, budget)])
    reached = np.cumsum(lengths)
    last = int(np.searchsorted(reached, budget))
    lengths = lengths[: last + 1]
    lengths[last] -= reached[last] - budget
    surplus = max(len(lengths) - budget, 0)
    return np.delete(lengths, np.flatnonzero(lengths == 0)[:surplus])


def permute_sentences(
    text: Damaged, starts: Sequence[int], rate: float, rng: np.random.Generator
) -> Damaged:
    """Let a share of the sentences change places with each other.

    Args:
        text: The text.
        starts: Where its sentences start, ascending; the first one starts at 0 in any case.
        rate: Share of the sentences, 0-1.
        rng: Random generator.
    """
    sentences = np.split(np.arange(len(text)), [start for start in starts if start > 0])
    chosen = rng.permutation(len(sentences))[: wanted(rate, len(sentences))]
    order = np.arange(len(sentences))
    order[np.sort(chosen)] = chosen
    return text.taken(np.concatenate([sentences[number] for number in order]))


def rotate(text: Damaged, rng: np.random.Generator) -> Damaged:
    """Let the text begin at any of its tokens; what was before it follows at the end."""
    first = int(rng.integers(max(len(text), 1)))
    return text.taken(np.roll(np.arange(len(text)), -first))
