"""Files are written whole or not at all, whoever else writes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fourstage.digests import unfinished, write_atomically


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
