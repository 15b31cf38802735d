"""Answers to rows with the entities that their texts name, by a packaged model that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from models.served.pieces import characters_of, encoded

# A normalised text, and of its tokens (n,) bool, which start a word, and (n,) their start and end
# offsets in the text, in characters: what `corpora.linking` reads.
Placed = tuple[str, np.ndarray, np.ndarray, np.ndarray]
Link = Callable[[Iterable[Placed]], Sequence[np.ndarray]]


def named_values(columns: Sequence[Sequence[str]], loaded: Any, link: Link) -> np.ndarray:
    """What the graph computes for rows, once it is known which entities their texts name.

    Args:
        columns: One list of texts, or two for pairs.
        loaded: The loaded graph, with ``place`` and ``serve``.
        link: Texts and where their tokens lie → the entity that is named from each token on.

    Returns:
        (B, N).
    """
    texts = [np.array(encoded(list(column)), object) for column in columns]
    named = [padded(link(placed(loaded.place(column)))) for column in texts]
    return np.asarray(loaded.serve(*texts, *named))


def placed(found: Mapping[str, Any]) -> list[Placed]:
    """What the graph's ``place`` says of each text, in characters."""
    basic, starts, ends = (np.asarray(found[name]) for name in ("basic", "starts", "ends"))
    bounds = np.concatenate([[0], np.cumsum(np.asarray(found["lengths"]))])
    texts = []
    for text, (first, end) in zip(np.asarray(found["texts"]), pairwise(bounds), strict=True):
        character, own = characters_of(text), slice(first, end)
        texts.append((text.decode(), basic[own], character[starts[own]], character[ends[own]]))
    return texts


def padded(named: Sequence[np.ndarray]) -> np.ndarray:
    """The entities of texts as one array (B, N) int32; N is the tokens of the longest text."""
    found = np.zeros((len(named), max(map(len, named))), np.int32)
    for row, own in enumerate(named):
        found[row, : len(own)] = own
    return found
