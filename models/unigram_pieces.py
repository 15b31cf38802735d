"""Learning the pieces of a unigram language model by EM, as arrays over all stretches of text.

    stretches → frequent substrings → rounds of [two steps of EM, then the pieces that matter least
    go] → pieces with their log-probabilities

A stretch is a run of letters, of ideographs, of digits or of other signs, with the space before it;
no piece goes beyond one. All ways to cut the stretches are edges between places in the text, which
are looked at together: the probability of a stretch sums over all its cuts.

Nothing depends on the number of cores or on the order of a hash map. Of the learners there are,
the one of the Rust package ``tokenizers`` gives other scores each time, and takes minutes for a
megabyte of Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

SPACE = "▁"  # a space, within pieces
LONGEST_PIECE = 16  # characters, as in SentencePiece
# Characters. A stretch is cut there, so that probabilities are numbers: 1e-9 ** 32 = 1e-288.
_LONGEST_STRETCH = 32
_SMALLEST = 1e-9  # probability of a piece
_MOST_CHARACTERS = 10_000_000  # of different stretches; the rarest beyond it are not learned from
_SEEDS = 10  # times the wanted number of pieces are tried, at least:
_FEWEST_SEEDS = 100_000
_KEPT = 0.75  # share of the pieces that outlive a round
_STEPS = 2  # of EM a round

_STRETCH = re.compile(f"{SPACE}?(?:LM*)+|{SPACE}?(?:IM*)+|{SPACE}?N+|{SPACE}?[OM]+|{SPACE}")


class _Kinds(dict):
    """{code of a character: letter of its kind}, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        name = unicodedata.name(chr(code), "")
        kind = unicodedata.category(chr(code))[0]
        if chr(code) == SPACE:
            kind = SPACE
        elif name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH")):
            kind = "I"
        elif kind not in "LMN":
            kind = "O"
        self[code] = kind
        return kind


_KINDS = _Kinds()


def stretches(text: str) -> list[str]:
    """The stretches of a text whose spaces are ``▁``."""
    found = [text[each.start() : each.end()] for each in _STRETCH.finditer(text.translate(_KINDS))]
    return [
        each[i : i + _LONGEST_STRETCH]
        for each in found
        for i in range(0, len(each), _LONGEST_STRETCH)
    ]


@dataclass(frozen=True)
class _Lattice:
    """All cuts of some texts: an edge is a piece between two nodes.

    A text of n characters has n + 1 nodes. Edges are ordered by the distance of their end from the
    first node.

    Attributes:
        first: (texts,) node in front of each text.
        last: (texts,) node behind it.
        starts: (edges,) node at which each edge starts.
        ends: (edges,) node at which it ends.
        pieces: (edges,) number of its piece.
        distances: (edges,) from the first node to `ends`.
    """

    first: np.ndarray
    last: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    pieces: np.ndarray
    distances: np.ndarray

    @classmethod
    def of(
        cls, lengths: np.ndarray, starts: np.ndarray, ends: np.ndarray, pieces: np.ndarray
    ) -> _Lattice:
        """A lattice of texts of so many characters, from edges in any order."""
        last = np.cumsum(lengths + 1) - 1
        first = last - lengths
        distances = ends - np.repeat(first, lengths + 1)[ends]
        order = np.argsort(distances, kind="stable")
        return cls(first, last, starts[order], ends[order], pieces[order], distances[order])

    def without(self, gone: np.ndarray) -> _Lattice:
        """The lattice without the edges of some pieces, (pieces,) bool."""
        kept = ~gone[self.pieces]
        edges = (self.starts, self.ends, self.pieces, self.distances)
        return _Lattice(self.first, self.last, *(each[kept] for each in edges))

    def _levels(self) -> list[slice]:
        bounds = np.searchsorted(self.distances, np.arange(1, self.distances.max(initial=0) + 2))
        return [slice(a, b) for a, b in pairwise(bounds)]

    def forward(self, probabilities: np.ndarray) -> np.ndarray:
        """(nodes,) probability of what is before each node, over all its cuts."""
        before = np.zeros(self.last[-1] + 1)
        before[self.first] = 1
        for level in self._levels():
            weights = before[self.starts[level]] * probabilities[self.pieces[level]]
            np.add.at(before, self.ends[level], weights)
        return before

    def expected(self, probabilities: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """(pieces,) how often each is expected in texts that occur so often."""
        before = self.forward(probabilities)
        behind = np.zeros_like(before)
        behind[self.last] = frequencies / before[self.last]
        for level in reversed(self._levels()):
            weights = behind[self.ends[level]] * probabilities[self.pieces[level]]
            np.add.at(behind, self.starts[level], weights)
        weights = before[self.starts] * probabilities[self.pieces] * behind[self.ends]
        return np.bincount(self.pieces, weights, len(probabilities))


def learn_pieces(
    texts: Iterable[str], number: int, alphabet: Iterable[str]
) -> list[tuple[str, float]]:
    """Learn the pieces of texts, in which spaces are ``▁``.

    Args:
        texts: Normalised texts.
        number: Pieces wanted; short texts give fewer.
        alphabet: Characters; each is a piece. Others are not learned from.

    Returns:
        (piece, natural logarithm of its probability), the likeliest first.

    Reference:
        Kudo 2018, arXiv 1804.10959, section 3.2, with the Bayesian M-step of SentencePiece.

    Differs from the paper:
        What a piece is worth is the likelihood lost if its text is read as all other cuts of it
        instead of the best one.
    """
    characters = sorted({*alphabet})
    counted = _counted(texts, characters)
    frequencies = np.array([count for _, count in counted], np.float64)
    pieces, counts, lattice = _seeds(
        [text for text, _ in counted],
        frequencies,
        characters,
        max(_FEWEST_SEEDS, _SEEDS * number),
    )
    single = np.array([len(piece) == 1 for piece in pieces])
    spelled = _spelled(pieces)
    gone = np.zeros(len(pieces), bool)
    probabilities = np.maximum(counts / counts.sum(), _SMALLEST)
    while True:
        for _ in range(_STEPS):
            counts = lattice.expected(probabilities, frequencies)
            may_go = ~single & ~gone
            spare = int(np.count_nonzero(~gone)) - number
            gone |= _smallest(np.where(may_go & (counts < 0.5), counts, np.inf), spare)
            probabilities = _probabilities(counts, gone)
        left = int(np.count_nonzero(~gone))
        if left <= number:
            break
        lost = _lost(counts, probabilities, spelled.without(gone), ~single & ~gone)
        gone |= _smallest(lost, left - max(number, int(_KEPT * left)))
        lattice = lattice.without(gone)
    found = [
        (pieces[i], float(np.float32(np.log(probabilities[i])))) for i in np.flatnonzero(~gone)
    ]
    return sorted(found, key=lambda piece: (-piece[1], piece[0]))


def _counted(texts: Iterable[str], characters: Sequence[str]) -> list[tuple[str, int]]:
    """The stretches of known characters and their counts, the most frequent first."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(stretches(text))
    known = re.compile(f"[{re.escape(''.join(characters))}]+")
    parts: Counter[str] = Counter()
    for text, count in counts.items():
        for part in known.findall(text):
            parts[part] += count
    found = sorted(parts.items(), key=lambda each: (-each[1], each[0]))
    sizes = np.cumsum([len(text) for text, _ in found])
    return found[: max(1, int(np.searchsorted(sizes, _MOST_CHARACTERS, "right")))]


def _seeds(
    texts: Sequence[str], frequencies: np.ndarray, characters: Sequence[str], most: int
) -> tuple[list[str], np.ndarray, _Lattice]:
    """The characters and the substrings with the most text in them, their counts, and all cuts.

    A substring of n characters is numbered by that of its first n − 1 and its last one.
    """
    joined = "".join(texts)
    number_of = {character: i for i, character in enumerate(characters)}
    codes = np.array([number_of[character] for character in joined], np.int64)
    lengths = np.array([len(text) for text in texts])
    ends = np.repeat(np.cumsum(lengths), lengths)
    weights = np.repeat(frequencies, lengths)
    nodes = np.arange(len(codes)) + np.repeat(np.arange(len(texts)), lengths)

    counts = [np.bincount(codes, weights, len(characters))]
    names = [list(characters)]
    places, numbers = np.arange(len(codes)), codes
    at: list[tuple[int, np.ndarray, np.ndarray]] = [(1, places, numbers)]
    for size in range(2, LONGEST_PIECE + 1):
        room = places + size <= ends[places]
        places, numbers = places[room], numbers[room]
        keys, firsts, numbers = np.unique(
            numbers * len(characters) + codes[places + size - 1],
            return_index=True,
            return_inverse=True,
        )
        often = np.bincount(numbers, weights[places], len(keys))
        names.append([joined[places[i] : places[i] + size] for i in firsts[often >= 2]])
        counts.append(often[often >= 2])
        kept = often[numbers] >= 2
        renumbered = np.cumsum(often >= 2) - 1
        places, numbers = places[kept], renumbered[numbers[kept]]
        at.append((size, places, numbers))
    worth = np.concatenate([count * (i + 1) for i, count in enumerate(counts[1:], 1)])
    best = np.zeros(len(worth), bool)
    best[np.argsort(-worth, kind="stable")[:most]] = True
    chosen = np.concatenate([np.ones(len(characters), bool), best])
    number = np.where(chosen, np.cumsum(chosen) - 1, -1)
    offsets = np.cumsum([0, *map(len, names)])
    starts, stops, pieces = [], [], []
    for (size, places, numbers), offset in zip(at, offsets, strict=False):
        piece = number[numbers + offset]
        there = piece >= 0
        starts.append(nodes[places[there]])
        stops.append(starts[-1] + size)
        pieces.append(piece[there])
    every = [name for some in names for name in some]
    return (
        [every[i] for i in np.flatnonzero(chosen)],
        np.concatenate(counts)[chosen],
        _Lattice.of(lengths, *map(np.concatenate, (starts, stops, pieces))),
    )


def _spelled(pieces: Sequence[str]) -> _Lattice:
    """How each piece can be cut into others; a single character cannot."""
    number_of = {piece: i for i, piece in enumerate(pieces)}
    edges = []
    node = 0
    for piece in pieces:
        for start in range(len(piece)):
            for end in range(start + 1, len(piece) + 1):
                number = number_of.get(piece[start:end])
                if number is not None and end - start < len(piece):
                    edges.append((node + start, node + end, number))
        node += len(piece) + 1
    columns = np.array(edges, np.int64).reshape(-1, 3).T
    return _Lattice.of(np.array([len(piece) for piece in pieces]), *columns)


def _probabilities(counts: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """The M-step: exp ψ(count) in place of the count, so that rare pieces get rarer."""
    from scipy.special import digamma

    counts = np.where(gone, 0, np.maximum(counts, 1e-3))
    found = np.zeros(len(counts))
    there = counts > 0
    found[there] = np.exp(digamma(counts[there]) - digamma(counts.sum()))
    return np.where(there, np.maximum(found, _SMALLEST), 0)


def _lost(
    counts: np.ndarray, probabilities: np.ndarray, spelled: _Lattice, may_go: np.ndarray
) -> np.ndarray:
    """(pieces,) log-likelihood that the text loses without each piece; ∞ for those that stay."""
    others = spelled.forward(probabilities)[spelled.last[may_go]]
    lost = np.full(len(counts), np.inf)
    lost[may_go] = counts[may_go] * (np.log(probabilities[may_go]) - np.log(others))
    return lost


def _smallest(values: np.ndarray, number: int) -> np.ndarray:
    """(n,) bool: the smallest finite values, so many at most."""
    found = np.zeros(len(values), bool)
    found[np.argsort(values, kind="stable")[: max(0, number)]] = True
    return found & np.isfinite(values)


def alphabet_of(counts: Mapping[str, int], coverage: float, most: int) -> list[str]:
    """The most frequent characters, sorted by code.

    Args:
        counts: {character: count}.
        coverage: Share of the text that they cover.
        most: Largest number of them.
    """
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    covered = np.cumsum([counts[character] for character in ranked])
    needed = int(np.searchsorted(covered, coverage * covered[-1])) + 1
    return sorted(ranked[: min(needed, most)])
