"""Spans of a text that are hidden behind a sentinel each, and written down in order (T5).

    text      thank you for inviting me to your party last week
    hidden    0     0   1   1        0  0  0    0     1    0
    seen      thank you <0>          me to your party <1>  week
    written   <0> for inviting <1> last

Numbers are fixed by the length of a text; which tokens are hidden is drawn.

Reference:
    Raffel et al. 2020, arXiv 1910.10683, 3.1.4 and 3.3.4; ``random_spans_helper`` and
    ``random_spans_noise_mask`` in ``preprocessors.py`` of
    google-research/text-to-text-transfer-transformer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SpanNumbers:
    """How much of a text is hidden.

    Attributes:
        text: Tokens of the text.
        hidden: Tokens that are hidden.
        spans: Spans that they are in.
    """

    text: int
    hidden: int
    spans: int

    @property
    def seen(self) -> int:
        """Tokens that are read: those that stay, and a sentinel a span."""
        return self.text - self.hidden + self.spans

    @property
    def written(self) -> int:
        """Tokens that are written: those hidden, and a sentinel a span."""
        return self.hidden + self.spans


def span_numbers(text: int, rate: float, mean_length: float) -> SpanNumbers:
    """The numbers for a text, rounded to the nearest; at least one token is hidden and one stays.

    Args:
        text: Tokens of the text, two or more.
        rate: Share of the tokens to hide, 0-1.
        mean_length: Mean tokens of a span, 1 or more.
    """
    hidden = min(max(round(round(text * rate, 6)), 1), text - 1)
    spans = max(round(round(hidden / mean_length, 6)), 1)
    return SpanNumbers(text, hidden, min(spans, hidden, text - hidden))


def longest_text(room: int, rate: float, mean_length: float) -> SpanNumbers:
    """The numbers for the longest text of which `room` tokens are read, two or more."""
    found = span_numbers(2, rate, mean_length)
    while (more := span_numbers(found.text + 1, rate, mean_length)).seen <= room:
        found = more
    return found


def hidden_spans(numbers: SpanNumbers, rng: np.random.Generator) -> np.ndarray:
    """Which tokens are hidden, (text,) bool: spans take turns with what stays, which comes first.

    All lengths of the spans, and of what stays between them, are equally likely.
    """
    stays = _parts(numbers.text - numbers.hidden, numbers.spans, rng)
    hidden = _parts(numbers.hidden, numbers.spans, rng)
    lengths = np.stack([stays, hidden], axis=1).ravel()
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)


def _parts(items: int, parts: int, rng: np.random.Generator) -> np.ndarray:
    """Lengths of the given number of parts, each at least one item, (parts,) int64."""
    cuts = np.sort(rng.permutation(items - 1)[: parts - 1]) + 1
    return np.diff(np.concatenate([[0], cuts, [items]]))


def with_sentinels(ids: np.ndarray, hidden: np.ndarray, sentinels: Sequence[int]) -> np.ndarray:
    """A text with a sentinel in place of each run of hidden tokens.

    Args:
        ids: (n,) token ids.
        hidden: (n,) bool; with its inverse this gives what is written.
        sentinels: Their ids in the order of use, at least as many as there are runs.
    """
    first = hidden & ~np.concatenate([[False], hidden[:-1]])
    found = ids.copy()
    found[first] = sentinels[: int(first.sum())]
    return found[first | ~hidden]


def filled(seen: Sequence[int], said: Sequence[int], sentinels: Collection[int]) -> list[int]:
    """A text with what is said of each sentinel in its place.

    Args:
        seen: Token ids of the text, with sentinels.
        said: Those written: sentinels, each before its span. Of several spans the first counts.
        sentinels: Their ids.

    Returns:
        The ids; a sentinel of which nothing is said stays.
    """
    spans: dict[int, list[int]] = {}
    span: list[int] = []
    for token in said:
        if token in sentinels:
            span = []
            spans.setdefault(token, span)
        else:
            span.append(token)
    return [each for token in seen for each in spans.get(token, [token])]
