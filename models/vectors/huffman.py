"""Huffman's tree over a vocabulary: frequent words have short paths from the root."""

from __future__ import annotations

import heapq

import numpy as np


def paths(frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The way from the root to each word.

    Args:
        frequencies: (V,) weights from 0, two or more; a word of weight 0 has a long path.

    Returns:
        The paths of all words, one after the other: (P,) int32 nodes from the root on, inner nodes
        having the numbers 0 to V - 2; (P,) float32, 1 where the way goes left there, to the lighter
        half, else 0; and (V,) int64, where each word's path ends.
    """
    number = len(frequencies)
    # Ties go to what has the lower number, so that a tree is a function of the weights.
    heap = [(float(weight), word) for word, weight in enumerate(frequencies)]
    heapq.heapify(heap)
    parent = np.zeros(2 * number - 1, np.int64)
    is_left = np.zeros(2 * number - 1, np.float32)
    for node in range(number, 2 * number - 1):
        light, first = heapq.heappop(heap)
        heavy, second = heap[0]
        heapq.heapreplace(heap, (light + heavy, node))
        parent[first] = parent[second] = node
        is_left[first] = 1.0
    root = 2 * number - 2
    # One step towards the root at a time, for all words that have not reached it.
    of, nodes, left = [], [], []
    at = np.arange(number)
    while len(under := np.flatnonzero(at != root)):
        of.append(under)
        left.append(is_left[at[under]])
        at[under] = parent[at[under]]
        nodes.append((at[under] - number).astype(np.int32))
    # Sorted by word, and from the last step back, which is the first from the root.
    words = np.concatenate(of[::-1])
    order = np.argsort(words, kind="stable")
    lengths = np.bincount(words, minlength=number)
    return (
        np.concatenate(nodes[::-1])[order],
        np.concatenate(left[::-1])[order],
        np.cumsum(lengths),
    )
