"""Sums by key of more keys than fit in memory: sorted runs on disk, merged block by block.

blocks of (keys, values) ─→ sorted, summed run ─┐
                         ─→ sorted, summed run ─┼→ merged: keys in order, each once, its sums
                         ─→ …                  ─┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MOST = 4_000_000  # keys held in memory at a time; about 100 bytes each while they are sorted


@dataclass(frozen=True)
class KeyedSums:
    """Sums by key.

    Attributes:
        keys: (n,) keys in order, each once; may be a memory map.
        values: (n, m) int64, what was summed of each key.
    """

    keys: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def blocks(self, size: int = MOST) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The keys and values in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.keys[start : start + size], self.values[start : start + size]

    def of(self, keys: np.ndarray) -> np.ndarray:
        """(k, m) values of keys; 0 for a key that is not there."""
        order = np.argsort(keys)  # looking up in order reads the table in order, twice as fast
        keys = keys[order]
        place = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        found = np.empty((len(keys), self.values.shape[1]), np.int64)
        found[order] = self.values[place] * (self.keys[place] == keys)[:, None]
        return found


def summed(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], folder: Path, *, most: int = MOST
) -> KeyedSums:
    """Sum values by key.

    The result does not depend on how keys are divided into blocks.

    Args:
        blocks: (n,) keys with (n, m) int64 values, in any order; at least one key in all.
        folder: Folder for runs and for a result that does not fit in memory; made if needed. A
            table that was mapped from it is good as long as the folder is.
        most: Number of keys from which they are sorted and, if more come, written to disk.
    """
    runs: list[KeyedSums] = []
    held: list[tuple[np.ndarray, np.ndarray]] = []
    size = 0
    for keys, values in blocks:
        held.append((keys, values))
        size += len(keys)
        if size >= most:
            runs.append(_mapped([_reduced(held)], folder / f"run-{len(runs)}"))
            held, size = [], 0
    if not runs:
        return _reduced(held)
    if size:
        runs.append(_mapped([_reduced(held)], folder / f"run-{len(runs)}"))
    if len(runs) == 1:
        return runs[0]
    merged = _mapped(_merged(runs, max(1, most // len(runs))), folder / "merged")
    for number in range(len(runs)):
        for path in _files(folder / f"run-{number}"):
            path.unlink()
    return merged


def _reduced(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> KeyedSums:
    """Sort and sum what is in memory."""
    keys = np.concatenate([keys for keys, _ in parts])
    values = np.concatenate([values for _, values in parts])
    if len(keys) and not (keys[:-1] <= keys[1:]).all():
        if values.shape[1] == 1 and (values == 1).all():
            keys = np.sort(keys)  # several times faster than finding the order
        else:
            order = np.argsort(keys)
            keys, values = keys[order], values[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return KeyedSums(keys[starts], np.add.reduceat(values, starts, axis=0))


def _merged(runs: Sequence[KeyedSums], size: int) -> Iterator[KeyedSums]:
    """The runs as one, a part at a time.

    Args:
        runs: Each with its keys in order.
        size: Largest number of keys that a part takes from each run.
    """
    places = [0] * len(runs)
    while any(place < len(run) for place, run in zip(places, runs, strict=True)):
        heads = [run.keys[at : at + size] for at, run in zip(places, runs, strict=True)]
        # Up to here all that the runs have is among their heads.
        bound = min(head[-1] for head in heads if len(head))
        parts = []
        for number, (run, head) in enumerate(zip(runs, heads, strict=True)):
            start, taken = places[number], int(np.searchsorted(head, bound, side="right"))
            parts.append((head[:taken], run.values[start : start + taken]))
            places[number] += taken
        yield _reduced(parts)


def _mapped(parts: Iterable[KeyedSums], path: Path) -> KeyedSums:
    """Write parts that follow one another, and map what was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys_file, values_file = _files(path)
    dtype, width = np.dtype(np.uint64), 1
    with keys_file.open("wb") as keys_out, values_file.open("wb") as values_out:
        for part in parts:
            dtype, width = part.keys.dtype, part.values.shape[1]
            keys_out.write(np.ascontiguousarray(part.keys).data.cast("B"))
            values_out.write(np.ascontiguousarray(part.values, np.int64).data.cast("B"))
    return KeyedSums(
        np.memmap(keys_file, dtype, "r"),
        np.memmap(values_file, np.int64, "r").reshape(-1, width),
    )


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_suffix(".keys"), path.with_suffix(".values")
