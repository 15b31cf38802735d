"""How often words stand near each other, counted on disk: memory does not grow with the text.

    portions → counts by pair, sorted (a run) → runs merged by ranges of pairs → random order

A pair (i, j) is the number i · V + j, so that sorted runs are merged by cutting all of them at the
same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from fourstage.errors import ContractViolation
from models.inputs.randomness import generator
from models.vectors import text
from models.vectors.text import Corpora

RUN = 8_000_000  # pairs in memory before a run is written
RUNS, BUCKET, PAIRS = "run-{:05d}.npy", "bucket-{:05d}.bin", "pairs.npy"
PAIR = np.dtype([("pair", np.int64), ("count", np.float64)])


@dataclass(frozen=True)
class PairCounts:
    """Counts of pairs in a file, in random order.

    Attributes:
        pairs: (n,) of `PAIR`, on disk.
        vocabulary_size: V.
    """

    pairs: np.ndarray
    vocabulary_size: int

    def __len__(self) -> int:
        return len(self.pairs)

    def part(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First words, second words and counts of some pairs."""
        some = np.array(self.pairs[first:end])
        words, others = np.divmod(some["pair"], self.vocabulary_size)
        return words, others, some["count"]


def counted(
    corpora: Corpora, kept: np.ndarray, window: int, folder: Path, seed: int, run: int = RUN
) -> PairCounts:
    """Count the pairs of each word with the words before and after it, by one over their distance.

    The counts of a corpus are weighted by its share against its share of the tokens.

    Args:
        corpora: The corpora; each is read once.
        kept: (V,) 1 for words, 0 for special tokens.
        window: Words to each side.
        folder: Where the counts are written. Whole counts that are there are read instead.
        seed: Seed of the order of the pairs.
        run: Number of pairs in memory beyond which a run is written.

    Raises:
        ContractViolation: No two words stand near each other.

    Reference:
        Pennington et al. 2014, section 4.2; ``cooccur.c`` and ``shuffle.c`` of GloVe.
    """
    size = len(kept)
    if (folder / PAIRS).exists():
        return PairCounts(np.load(folder / PAIRS, mmap_mode="r"), size)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    held: list[np.ndarray] = []
    number = 0
    for pairs in _pairs(corpora, kept, window):
        held.append(pairs)
        number += len(pairs)
        if number >= run:
            held = [_added(held)]
            number = len(held[0])
            if number >= run // 2:
                written.append(_write(folder, len(written), held))
                held, number = [], 0
    written.append(_write(folder, len(written), held))
    runs = [np.load(path, mmap_mode="r") for path in written]
    if not any(map(len, runs)):
        raise ContractViolation(
            "glove: no document has two words of the tokenizer's vocabulary, so nothing is counted"
        )
    merged = _merged(runs, size, run, folder, seed)
    for path in written:
        path.unlink()
    return PairCounts(merged, size)


def _pairs(corpora: Corpora, kept: np.ndarray, window: int) -> Iterator[np.ndarray]:
    total = sum(corpus.num_tokens for corpus, _ in corpora.values())
    for name, (corpus, share) in sorted(corpora.items()):
        weight = share * total / max(1, corpus.num_tokens)
        one = {name: (corpus, 1.0)}
        rng = generator("pairs")  # of no use: all words are kept
        for portion in text.portions(one, corpus.num_tokens, 0):
            ids, documents = text.kept_words(portion, one, kept, rng)
            ids = ids.astype(np.int64)
            for distance in range(1, window + 1):
                same = documents[distance:] == documents[:-distance]
                before, after = ids[:-distance][same], ids[distance:][same]
                numbers = np.concatenate([before * len(kept) + after, after * len(kept) + before])
                found = np.empty(len(numbers), PAIR)
                found["pair"], found["count"] = numbers, weight / distance
                yield _added([found])


def _added(parts: list[np.ndarray]) -> np.ndarray:
    """Pairs in ascending order, counts of the same pair added up in the order of the parts."""
    every = np.concatenate(parts) if parts else np.empty(0, PAIR)
    numbers, place = np.unique(every["pair"], return_inverse=True)
    found = np.empty(len(numbers), PAIR)
    found["pair"] = numbers
    found["count"] = np.bincount(place, weights=every["count"], minlength=len(numbers))
    return found


def _write(folder: Path, number: int, held: list[np.ndarray]) -> Path:
    path = folder / RUNS.format(number)
    np.save(path, _added(held))
    return path


def _merged(
    runs: list[np.ndarray], vocabulary_size: int, run: int, folder: Path, seed: int
) -> np.ndarray:
    """One file of all pairs in random order.

    A range of pairs at a time is merged in memory. Each pair then goes to a random one of as many
    buckets as there are ranges, and each bucket is shuffled.
    """
    ranges = max(1, -(-sum(map(len, runs)) // run))
    # Each range has about as many pairs of all runs, by a sample of them.
    sample = np.sort(np.concatenate([each["pair"][:: 1 + len(each) // 1000] for each in runs]))
    inner = sample[np.arange(1, ranges) * len(sample) // ranges]
    borders = [0, *inner.tolist(), vocabulary_size**2]
    buckets = [folder / BUCKET.format(number) for number in range(ranges)]
    total = 0
    with ExitStack() as stack:
        files = [stack.enter_context(bucket.open("wb")) for bucket in buckets]
        for number, limits in enumerate(pairwise(borders)):
            cuts = [np.searchsorted(each["pair"], limits) for each in runs]
            parts = [np.array(each[a:b]) for each, (a, b) in zip(runs, cuts, strict=True)]
            found = _added(parts)
            total += len(found)
            chosen = generator(seed, "bucket", number).integers(ranges, size=len(found))
            for i, file in enumerate(files):
                file.write(found[chosen == i].tobytes())
    part = folder / f"part-{PAIRS}"
    merged = np.lib.format.open_memmap(part, "w+", PAIR, (total,))
    at = 0
    for number, bucket in enumerate(buckets):
        some = np.fromfile(bucket, PAIR)
        merged[at : at + len(some)] = generator(seed, "order", number).permutation(some)
        at += len(some)
        bucket.unlink()
    merged.flush()
    part.replace(folder / PAIRS)  # a file of this name is whole
    return np.load(folder / PAIRS, mmap_mode="r")
