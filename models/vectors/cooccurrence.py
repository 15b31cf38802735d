"""How often words stand near each other, counted on disk in memory that does not grow with the text.

    portions → counts by pair, sorted (a run) → runs merged by ranges of pairs → pairs in random order

A pair (i, j) is the number i · V + j, so that sorted runs are merged by cutting all of them at the
same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.inputs.randomness import generator
from models.vectors import text
from models.vectors.text import Corpora

RUN = 8_000_000  # pairs in memory before a run is written
RUNS, MERGED = "run-{:05d}.npy", "pairs.npy"
PAIR = np.dtype([("pair", np.int64), ("count", np.float64)])


@dataclass(frozen=True)
class Counts:
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
) -> Counts:
    """Count the pairs of each word with the words before and after it, by one over their distance.

    The counts of a corpus are weighted by its share against its share of the tokens.

    Args:
        corpora: The corpora; each is read once.
        kept: (V,) 1 for words, 0 for special tokens.
        window: Words to each side.
        folder: Where the counts are written; what is there is replaced.
        seed: Seed of the order of the pairs.
        run: Largest number of pairs in memory.

    Reference:
        Pennington et al. 2014, section 4.2; ``cooccur.c`` and ``shuffle.c`` of GloVe.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.npy"):
        old.unlink()
    size = len(kept)
    written, held, number = [], [], 0
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
    merged = _merged(runs, size, run, folder, seed)
    for path in written:
        path.unlink()
    return Counts(merged, size)


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
                numbers = np.concatenate(
                    [before * len(kept) + after, after * len(kept) + before]
                )
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

    The pairs of a range of first words come together, because they are merged in memory; then each
    goes to a random one of as many buckets as there are ranges, and each bucket is shuffled.
    """
    upper = sum(len(each) for each in runs)
    ranges = max(1, -(-upper // run))
    first_words = np.linspace(0, vocabulary_size, ranges + 1).astype(np.int64)
    buckets = [folder / f"bucket-{i:05d}.bin" for i in range(ranges)]
    total = 0
    files = [bucket.open("wb") for bucket in buckets]
    try:
        for number in range(ranges):
            low, high = first_words[number : number + 2] * vocabulary_size
            cuts = [np.searchsorted(each["pair"], [low, high]) for each in runs]
            parts = [np.array(each[a:b]) for each, (a, b) in zip(runs, cuts, strict=True)]
            found = _added(parts)
            total += len(found)
            chosen = generator(seed, "bucket", number).integers(ranges, size=len(found))
            for i, file in enumerate(files):
                file.write(found[chosen == i].tobytes())
    finally:
        for file in files:
            file.close()
    merged = np.lib.format.open_memmap(folder / MERGED, "w+", PAIR, (total,))
    at = 0
    for number, bucket in enumerate(buckets):
        some = np.fromfile(bucket, PAIR)
        merged[at : at + len(some)] = generator(seed, "order", number).permutation(some)
        at += len(some)
        bucket.unlink()
    merged.flush()
    return np.load(folder / MERGED, mmap_mode="r") if total else merged
