"""Probabilities of the next token, from counts of n-grams: pure functions of arrays.

With c the counts of an order, h a history, h' the history without its oldest token, E the number of
tokens that can follow, and p₀ = 1 / E:

    maximum likelihood     c(hw) / c(h)
    add-k                  (c(hw) + k) / (c(h) + k E)
    interpolated           λ c(hw) / c(h) + (1 - λ) p(w | h')
    Kneser-Ney             (max(c(hw) - D, 0) + γ(h) p(w | h')) / c(h)

Where a history was never seen, p(w | h) is p(w | h'), so that probabilities sum to 1 for every
history; add-k gives 1 / E there. Kneser-Ney counts at its highest order how often an n-gram occurs,
and below it after how many different tokens. D is D₁, D₂ or D₃ for an n-gram counted once, twice or
more often, and γ(h) the sum of all that is discounted after h.

Reference: Chen and Goodman 1998, "An Empirical Study of Smoothing Techniques for Language
Modeling", TR-10-98, Harvard University, sections 2 and 3. λ is one number here; theirs depends on
c(h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# {number of discounts: discounts} where counts of counts give none, as in a small vocabulary all of
# which is frequent. The three are those that KenLM falls back to.
FALLBACK = {1: (0.75,) * 3, 3: (0.5, 1.0, 1.5)}


@dataclass(frozen=True)
class OrderCounts:
    """What the counts of one order say of N tokens.

    Attributes:
        count: (N,) c(hw).
        total: (N,) c(h); 0 for a history never seen.
        kinds: (N, 3) how many tokens follow h once, twice, more often.
    """

    count: np.ndarray
    total: np.ndarray
    kinds: np.ndarray


def maximum_likelihood(orders: Sequence[OrderCounts]) -> np.ndarray:
    """(N,) relative frequency after the longest history that was seen; 0 for what never followed.

    Args:
        orders: The counts of each order, the shortest first; of one at least.
    """
    found = np.zeros(len(orders[0].count))
    for seen in orders:
        found = np.where(seen.total > 0, _divided(seen.count, seen.total), found)
    return found


def add_k(longest: OrderCounts, num_events: int, k: float) -> np.ndarray:
    """(N,) probabilities, as if each token had followed each history `k` times more.

    Args:
        longest: The counts of the highest order.
        num_events: Number of tokens that can follow.
        k: Above 0.
    """
    return (longest.count + k) / (longest.total + k * num_events)


def interpolated(orders: Sequence[OrderCounts], num_events: int, share: float) -> np.ndarray:
    """(N,) probabilities, linearly interpolated with those after shorter histories.

    Args:
        orders: The counts of each order, the shortest first.
        num_events: Number of tokens that can follow.
        share: λ, 0-1, the share of the longer history at each order.
    """
    found = np.full(len(orders[0].count), 1.0 / num_events)
    for seen in orders:
        longer = share * _divided(seen.count, seen.total) + (1.0 - share) * found
        found = np.where(seen.total > 0, longer, found)
    return found


def kneser_ney(
    orders: Sequence[OrderCounts], num_events: int, discounts: Sequence[Sequence[float]]
) -> np.ndarray:
    """(N,) probabilities of interpolated Kneser-Ney smoothing.

    Args:
        orders: The counts of each order, the shortest first.
        num_events: Number of tokens that can follow.
        discounts: (D₁, D₂, D₃) of each order; all the same for the unmodified method.
    """
    found = np.full(len(orders[0].count), 1.0 / num_events)
    for seen, of_order in zip(orders, discounts, strict=True):
        by_count = np.array([0.0, *of_order])
        kept = seen.count - by_count[np.minimum(seen.count, 3)]
        left_over = seen.kinds @ np.array(of_order)
        found = np.where(seen.total > 0, _divided(kept + left_over * found, seen.total), found)
    return found


def discount(counts_of_counts: np.ndarray) -> tuple[float, ...] | None:
    """The one discount of an order, as (D, D, D); None if the counts of counts give none.

    Args:
        counts_of_counts: (4,) how many n-grams were counted once, twice, three and four times.
    """
    n1, n2, *_ = counts_of_counts.tolist()
    return (n1 / (n1 + 2 * n2),) * 3 if n1 and n2 else None


def modified_discounts(counts_of_counts: np.ndarray) -> tuple[float, ...] | None:
    """(D₁, D₂, D₃) of an order; None if the counts of counts give none from 0 to their count.

    Args:
        counts_of_counts: (4,) how many n-grams were counted once, twice, three and four times.
    """
    n = [0, *counts_of_counts.tolist()]
    if not (n[1] and n[2] and n[3]):
        return None
    y = n[1] / (n[1] + 2 * n[2])
    found = tuple(i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3))
    return found if all(0 <= d <= i for i, d in enumerate(found, 1)) else None


def _divided(parts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Quotients; of no total any number, which nobody reads."""
    return parts / np.maximum(totals, 1)
