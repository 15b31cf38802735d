"""Compressed and watched streams (faults S08, S10, S45)."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import random
import resource
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.streams import byte_lines, decompressed
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare
from tests.corpora.made_up import documents, lines_of


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=4), st.integers(1, 700))
def test_members_of_gzip_and_bzip2_are_read_one_after_the_other(parts: list[bytes], size: int):
    for suffix, compress in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        stream = decompressed(io.BytesIO(b"".join(map(compress, parts))), f"x{suffix}", "x")
        read = b"".join(iter(lambda: stream.read(size), b""))  # noqa: B023
        assert read == b"".join(parts)


@given(st.binary(max_size=400), st.binary(max_size=40), st.integers(0, 430))
def test_damage_to_a_compressed_stream_is_ours_or_unseen(data: bytes, noise: bytes, place: int):
    for suffix, compress in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        whole = compress(data)
        broken = whole[:place] + noise + whole[place + len(noise) :]
        message = "x: "
        try:
            decompressed(io.BytesIO(broken), f"x{suffix}", "x").read()
        except ContractViolation as error:
            message = str(error)
        assert message.startswith("x: ")


def test_two_gzip_members_are_legal_and_rubbish_after_them_is_named(
    tmp_path: Path, corpus: Prepare
):
    path = tmp_path / "c.jsonl.gz"
    first, second = documents(100), documents(100, seed=9)
    path.write_bytes(
        gzip.compress(lines_of(first).encode()) + gzip.compress(lines_of(second).encode())
    )
    assert corpus(path).counts.read == 200
    path.write_bytes(path.read_bytes() + b"\0" * 512)  # padding to a block
    assert corpus(path).counts.read == 200
    path.write_bytes(path.read_bytes() + b"rubbish\n")
    with pytest.raises(
        ContractViolation, match=r"c\.jsonl\.gz.*data after the end of the gzip stream"
    ):
        corpus(path)


@pytest.mark.parametrize("suffix", ["gz", "bz2"])
def test_a_truncated_stream_is_named(tmp_path: Path, corpus: Prepare, suffix: str):
    path = tmp_path / f"c.jsonl.{suffix}"
    compress = gzip.compress if suffix == "gz" else bz2.compress
    data = compress(lines_of(documents(300)).encode())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ContractViolation, match="truncated"):
        corpus(path)
    path.write_bytes(b"plain text under a wrong name\n")
    with pytest.raises(ContractViolation, match=r"expected (gzip|bzip2) data by its name"):
        corpus(path)


@pytest.mark.parametrize("name", ["c.txt.gz", "c.jsonl.gz"])
def test_gigabytes_of_one_character_are_refused_early_in_little_memory(
    tmp_path: Path, corpus: Prepare, name: str
):
    path = tmp_path / name
    with gzip.open(path, "wb") as stream:
        for _ in range(200):
            stream.write(b"a" * (1 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    with pytest.raises(ContractViolation, match=r"longer than|more than"):
        corpus(path)
    assert time.monotonic() - start < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


def test_lines_that_decompress_out_of_proportion_are_refused(tmp_path: Path, corpus: Prepare):
    path = tmp_path / "c.jsonl.gz"
    with gzip.open(path, "wb") as stream:
        for _ in range(10):
            stream.write((b"a" * 1023 + b"\n") * 1024)
    with pytest.raises(ContractViolation, match="text does not compress so"):
        corpus(path)


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(1, 64))
def test_lines_and_offsets_rebuild_the_bytes(parts: list[bytes], size: int):
    data = b"\n".join(parts)

    class Small:
        def __init__(self) -> None:
            self.stream = io.BytesIO(data)

        def read(self, _: int = -1, /) -> bytes:
            return self.stream.read(size)

    found = list(byte_lines(Small(), "x"))
    assert b"".join(line for _, _, line in found) == data
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    for _, offset, line in found:
        assert data[offset : offset + len(line)] == line
        assert b"\n" not in line[:-1]


def test_a_file_that_grows_or_is_replaced_after_the_snapshot_is_an_error(tmp_path: Path):
    from corpora.reading import read_documents
    from corpora.snapshot import take_snapshot
    from tests.corpora.conftest import source_of

    path = tmp_path / "c.jsonl"
    path.write_text(lines_of(documents(5000)))
    source = source_of(files=str(path))
    snapshot = take_snapshot(source)
    with open(path, "a") as stream:
        stream.write(lines_of(documents(1, seed=5)))
    with pytest.raises(ContractViolation, match="changed while being read"):
        list(read_documents(source, snapshot))

    snapshot = take_snapshot(source)
    reading = iter(read_documents(source, snapshot))
    next(reading)
    with open(path, "a") as stream:
        stream.write(lines_of(documents(1, seed=6)))
    with pytest.raises(ContractViolation, match="changed while being read"):
        list(reading)

    snapshot = take_snapshot(source)
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(other, path)
    with pytest.raises(ContractViolation, match="changed while being read"):
        list(read_documents(source, snapshot))


def test_random_bytes_under_every_name_give_only_our_errors(tmp_path: Path, corpus: Prepare):
    rng = random.Random(4)
    for suffix in ("txt", "jsonl", "csv", "tsv", "parquet", "jsonl.gz", "csv.bz2", "zip", "tar.gz"):
        for size in (1, 30, 4000):
            path = tmp_path / f"{size}.{suffix}"
            path.write_bytes(rng.randbytes(size))
            message = str(size)
            try:
                corpus(path)
            except ContractViolation as error:
                message = str(error)
            assert str(size) in message
