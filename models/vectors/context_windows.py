"""Windows around the words of a text, a block of words at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

STRETCH = 32  # T, words whose windows are read together: they share their noise words
STRETCHES = 16  # C, stretches in an update


@dataclass(frozen=True)
class Block:
    """C stretches of T words each, with the words around them: J = T + 2 · window.

    Attributes:
        words: (C, T) int32 ids.
        around: (C, J) int32 ids; a word's own place among them is `window` further.
        pairs: (C, T, J) float32, 1 where the second word is in the window of the first.
    """

    words: np.ndarray
    around: np.ndarray
    pairs: np.ndarray


def num_blocks(words: int) -> int:
    """Number of `blocks` of a text."""
    return -(-words // (STRETCH * STRETCHES))


def blocks(
    ids: np.ndarray, documents: np.ndarray, window: int, rng: np.random.Generator
) -> Iterator[Block]:
    """Blocks over a text from its start; the last one is filled up with words without a window.

    Each word's window reaches 1 to `window` words to both sides, all equally likely, and ends where
    the document does.

    Args:
        ids: (n,) word ids.
        documents: (n,) number of each word's document, from 0.
        window: Words to each side at most.
        rng: Draws the windows.

    Reference:
        Mikolov et al. 2013, arXiv 1301.3781, 3.2.
    """
    if not len(ids):  # a portion of unknown words, or all of it thinned out
        return
    size = STRETCH * STRETCHES
    missing = -len(ids) % size
    reach = rng.integers(1, window + 1, len(ids), dtype=np.int32)
    reach = np.pad(reach, (0, missing)).reshape(-1, STRETCHES, STRETCH, 1)
    shape = (-1, STRETCHES, STRETCH + 2 * window)
    around = _overlapping(np.pad(ids, (window, window + missing)), window).reshape(shape)
    of = np.pad(documents, (window, window + missing), constant_values=-1)
    of = _overlapping(of, window).reshape(shape)
    middle = slice(window, window + STRETCH)
    distance = np.abs(np.arange(-window, STRETCH + window) - np.arange(STRETCH)[:, None])
    distance[distance == 0] = window + 1  # a word is not in its own window
    distance = distance.astype(np.int32)
    for number in range(len(around)):
        near = distance <= reach[number]  # (C, T, J)
        near &= of[number][:, middle, None] == of[number][:, None, :]
        words = around[number]
        yield Block(words[:, middle], words, near.astype(np.float32))


def _overlapping(padded: np.ndarray, window: int) -> np.ndarray:
    """(n + 2 · window,) → (n / T, T + 2 · window), each row T further than the one before."""
    return sliding_window_view(padded, STRETCH + 2 * window)[::STRETCH]
