"""Sums of keys that do not fit in memory equal those of keys that do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from models.counting.array_file import map_arrays, write_arrays
from models.counting.packing import Packing
from models.counting.sums import KeyedSums, summed


def blocks(dtype: str) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(4)
    keys = [rng.integers(0, 60, n).astype(np.uint64) for n in (50, 1, 0, 300, 7)]
    found = [(k + np.uint64(100)).astype("S3") if dtype == "S3" else k for k in keys]
    return [(k, rng.integers(1, 9, (len(k), 2))) for k in found]


@pytest.mark.parametrize("dtype", ["u8", "S3"])
@pytest.mark.parametrize("most", [1, 7, 100, 10_000])
def test_any_number_of_runs_gives_the_sums_of_one(dtype: str, most: int, tmp_path: Path) -> None:
    expected: Counter = Counter()
    for keys, values in blocks(dtype):
        for key, row in zip(keys.tolist(), values, strict=True):
            expected[key] = expected[key] + row
    found = summed(iter(blocks(dtype)), tmp_path, most=most)
    assert found.keys.tolist() == sorted(expected)
    assert all(
        np.array_equal(row, expected[key])
        for key, row in zip(found.keys.tolist(), found.values, strict=True)
    )


def test_counts_of_single_keys_are_sums_of_ones(tmp_path: Path) -> None:
    keys = np.array([5, 3, 5, 5, 9], np.uint64)
    found = summed([(keys, np.ones((5, 1), np.int64))], tmp_path)
    assert found.keys.tolist() == [3, 5, 9]
    assert found.values[:, 0].tolist() == [1, 3, 1]


def test_a_key_that_is_not_there_has_nothing() -> None:
    table = KeyedSums(np.array([2, 4], np.uint64), np.array([[7], [8]]))
    asked = np.array([0, 2, 3, 4, 5], np.uint64)
    assert table.of(asked)[:, 0].tolist() == [0, 7, 0, 8, 0]


@pytest.mark.parametrize("vocabulary_size", [7, 2**16, 2**22, 2**32])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_keys_sort_as_their_n_grams_and_lose_a_token_at_either_end(
    vocabulary_size: int, order: int
) -> None:
    packing = Packing(order, vocabulary_size)
    assert packing.in_numbers == (order * (vocabulary_size - 1).bit_length() <= 64)
    rng = np.random.default_rng(1)
    tokens = rng.choice([0, 1, 2, vocabulary_size // 3, vocabulary_size - 1], 60)
    rows = np.lib.stride_tricks.sliding_window_view(tokens, order)
    keys = packing.ngrams(tokens)
    assert len(keys) == len(rows)
    by_key, by_row = (
        np.argsort(keys, kind="stable"),
        sorted(range(len(rows)), key=lambda i: [*rows[i]]),
    )
    assert by_key.tolist() == by_row
    if order > 1:
        shorter = Packing(order - 1, vocabulary_size)
        if shorter.in_numbers == packing.in_numbers:
            assert np.array_equal(packing.without_first(keys, order), shorter.ngrams(tokens[1:]))
            assert np.array_equal(packing.without_last(keys, order), shorter.ngrams(tokens[:-1]))
    else:
        assert not packing.without_last(keys, 1).any()


def test_arrays_are_written_as_safetensors_and_mapped_again(tmp_path: Path) -> None:
    arrays = {
        "bytes": np.array([b"ab\0", b"\0\0\0", b"xyz"], "S3"),
        "numbers": np.arange(5, dtype=np.uint64),
        "floats": np.linspace(0, 1, 6).reshape(3, 2),
        "counts": np.array([[3], [-4]]),
    }
    write_arrays(tmp_path / "a.safetensors", arrays)
    theirs, ours = load_file(tmp_path / "a.safetensors"), map_arrays(tmp_path / "a.safetensors")
    assert theirs.keys() == ours.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(ours[name], array)
        plain = array.view(np.uint8).reshape(3, 3) if name == "bytes" else array
        assert np.array_equal(theirs[name], plain)
