"""How far the distribution of a column has moved, in words and as one number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from data_contracts.verdict import percent_text, printable
from data_contracts.vocabulary import number_text

_NUM_SHOWN = 5
_LONGEST_SHOWN = 40


def quantiles_found(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Each observed quantile; with its bound, if it is out of range."""
    parts = []
    for q, value, (low, high) in zip(
        found["quantiles"], found["values"], expected["value_ranges"], strict=True
    ):
        text = f"{q:g}: {number_text(value)}"
        if low is not None and value < low:
            text += f", below {number_text(low)}"
        elif high is not None and value > high:
            text += f", above {number_text(high)}"
        parts.append(text)
    return "; ".join(parts)


def farthest_quantile(expected: Mapping[str, Any], found: Mapping[str, Any]) -> float | None:
    """Largest distance of a quantile from the middle of its range; 1 is the edge of the range.

    None if no range has two ends, or all have zero width.
    """
    distances = [
        abs(value - (low + high) / 2) / ((high - low) / 2)
        for value, (low, high) in zip(found["values"], expected["value_ranges"], strict=True)
        if low is not None and high is not None and high > low
    ]
    return max(distances, default=None)


def divergence_found(value: float, details: Mapping[str, Any]) -> str:
    """The divergence, and the values or bins whose shares changed most."""
    text = number_text(value)
    if not math.isfinite(value):
        text = "infinite: has values that the expected one lacks"
    before = _shares(details.get("expected_partition") or {})
    after = _shares(details.get("observed_partition") or {})
    change = {n: after.get(n, 0.0) - before.get(n, 0.0) for n in {*before, *after}}
    moved = sorted((n for n in change if change[n]), key=lambda n: (-abs(change[n]), n))
    if not moved or any(len(name) > _LONGEST_SHOWN for name in moved):
        return text
    shown = [
        f"{printable(name)} {percent_text(before.get(name, 0.0))} → "
        f"{percent_text(after.get(name, 0.0))}"
        for name in moved[:_NUM_SHOWN]
    ]
    return f"{text}; {', '.join(shown)}"


def _shares(partition: Mapping[str, Any]) -> dict[str, float]:
    """Share of each value, or of each bin by its ends."""
    weights = partition.get("weights", ())
    if "values" in partition:
        return {str(v): float(w) for v, w in zip(partition["values"], weights, strict=True)}
    bins = partition.get("bins", ())
    ends = [f"{number_text(a)} to {number_text(b)}" for a, b in pairwise(bins)]
    shares = dict(zip(ends, map(float, weights), strict=True))
    if "tail_weights" in partition:
        below, above = partition["tail_weights"]
        shares |= {f"below {number_text(bins[0])}": float(below)}
        shares |= {f"above {number_text(bins[-1])}": float(above)}
    return shares
