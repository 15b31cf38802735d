"""Huffman's tree over a vocabulary: frequent words have short paths from the root."""

from __future__ import annotations

import heapq

import numpy as np


def paths(frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The way from the root to each word.

    Args:
        frequencies: (V,) weights from 0; a word of weight 0 has a long path.

    Returns:
        (V, longest) int32, nodes from the root on, -1 after the last; inner nodes have the numbers
        0 to V - 2. And (V, longest) bool, whether the way goes left there, to the lighter half.
    """
    number = len(frequencies)
    # Ties go to what has the lower number, so that a tree is a function of the weights.
    heap = [(float(weight), word) for word, weight in enumerate(frequencies)]
    heapq.heapify(heap)
    parent = np.zeros(2 * number - 1, np.int64)
    is_left = np.zeros(2 * number - 1, bool)
    for node in range(number, 2 * number - 1):
        light, first = heapq.heappop(heap)
        heavy, second = heapq.heappop(heap)
        parent[first] = parent[second] = node
        is_left[first] = True
        heapq.heappush(heap, (light + heavy, node))
    root = 2 * number - 2
    ways: list[list[tuple[int, bool]]] = []
    for word in range(number):
        way, at = [], word
        while at != root:
            way.append((int(parent[at]) - number, bool(is_left[at])))
            at = int(parent[at])
        ways.append(way[::-1])
    longest = max(map(len, ways))
    nodes = np.full((number, longest), -1, np.int32)
    left = np.zeros((number, longest), bool)
    for word, way in enumerate(ways):
        for step, (node, turned) in enumerate(way):
            nodes[word, step], left[word, step] = node, turned
    return nodes, left
