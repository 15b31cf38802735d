"""Files are written whole or not at all, whoever else writes them."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fourstage.digests import CHUNK, DigestCache, hash_file, unfinished, write_atomically


def test_writers_of_one_file_share_no_unfinished_one(tmp_path: Path):
    """They may be on two machines, or in two containers, with the same process id."""
    path = tmp_path / "table.json"
    names = {unfinished(path) for _ in range(100)}
    assert len(names) == 100
    assert {name.parent for name in names} == {tmp_path}
    texts = [str(i) * 10_000 for i in range(8)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda text: write_atomically(path, text), texts))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_the_digest_of_a_file_is_of_all_its_bytes(tmp_path: Path):
    path = tmp_path / "large.bin"
    content = bytes(2 * CHUNK) + b"the end"
    path.write_bytes(content)
    assert hash_file(path) == hashlib.sha256(content).hexdigest()


def test_a_change_that_keeps_size_and_time_of_a_file_is_seen(tmp_path: Path):
    """As when a file is replaced from a copy or an archive, which put its time back."""
    path, known = tmp_path / "words.txt", DigestCache(tmp_path / "digests.jsonl")
    path.write_text("one two")
    first, stat = known.of(path), path.stat()
    while path.stat().st_ctime_ns == stat.st_ctime_ns:  # the kernel's clock ticks every few ms
        path.write_text("two one")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_mtime_ns == stat.st_mtime_ns
    assert known.of(path) != first
    assert DigestCache(tmp_path / "digests.jsonl").of(path) == known.of(path)
