"""Windows of a text that is read word by word and is too long for the network.

    words       0 1 2 3 4 5 6 7 8 9
    windows     0 1 2 3 4 5
                      3 4 5 6 7 8
                            6 7 8 9
    read in     0 0 0 0 0 1 1 1 2 2     the window in which a word has the most context

Reference:
    Devlin et al. 2019, arXiv 1810.04805, by the published code for SQuAD.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def windows(lengths: np.ndarray, room: int, stride: int | None = None) -> list[tuple[int, int]]:
    """First word, and word after the last, of each window; one window at least.

    Args:
        lengths: (words,) tokens of each word.
        room: Tokens that fit in a window. A word longer than that has a window of its own.
        stride: Tokens from the start of a window to that of the next; None for half of the room.
    """
    ends = np.cumsum(lengths)
    starts = ends - lengths
    stride = stride or max(room // 2, 1)
    found: list[tuple[int, int]] = []
    first = 0
    while True:
        begin = int(starts[first]) if len(lengths) else 0
        end = int(np.searchsorted(ends, begin + room, side="right"))
        end = min(max(end, first + 1), len(lengths))
        found.append((first, end))
        if end >= len(lengths):
            return found
        following = int(np.searchsorted(starts, begin + stride, side="right")) - 1
        first = min(max(following, first + 1), end)


def most_context(windows: Sequence[tuple[int, int]], num_words: int) -> np.ndarray:
    """The number of the window in which each word has the most context, (words,) int64.

    The context of a word is the smaller number of words on either side; between equals the
    longer window counts, then the earlier.
    """
    best = np.full(num_words, -1.0)
    chosen = np.zeros(num_words, np.int64)
    for number, (start, end) in enumerate(windows):
        words = np.arange(start, end)
        context = np.minimum(words - start, end - 1 - words) + 0.01 * (end - start)
        better = context > best[start:end]
        best[start:end] = np.where(better, context, best[start:end])
        chosen[start:end] = np.where(better, number, chosen[start:end])
    return chosen
