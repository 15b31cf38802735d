"""Checkpoints: whole or not there, the last two, damage noticed."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
import pytest

from models.training import checkpoint

ARRAYS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array(7, np.int64), np.zeros(0))


def test_what_is_written_is_read_bit_for_bit(tmp_path):
    checkpoint.write(tmp_path, 3, ARRAYS, {"tokens": 5, "best": None})
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 3
    assert found.details == {"tokens": 5, "best": None}
    for array, expected in zip(found.arrays, ARRAYS, strict=True):
        assert array.dtype == expected.dtype
        assert array.shape == expected.shape
        assert array.tobytes() == expected.tobytes()


def test_the_last_two_of_each_series_are_kept(tmp_path):
    for step in range(5):
        checkpoint.write(tmp_path, step, ARRAYS, {})
    checkpoint.write(tmp_path, 1, ARRAYS, {}, series="best")
    assert checkpoint.written_steps(tmp_path) == [3, 4]
    assert checkpoint.written_steps(tmp_path, "best") == [1]


@pytest.mark.parametrize("name", [checkpoint.ARRAYS, checkpoint.DETAILS])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "empty"])
def test_a_damaged_one_is_told_and_gives_way_to_the_one_before(tmp_path, capsys, name, damage):
    checkpoint.write(tmp_path, 1, ARRAYS, {"n": 1})
    checkpoint.write(tmp_path, 2, ARRAYS, {"n": 2})
    path = tmp_path / "step-000000002" / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[3] ^= 0xFF
        path.write_bytes(content)
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.details == {"n": 1}
    assert "using the previous checkpoint instead" in capsys.readouterr().err


def test_one_that_was_never_finished_is_not_there(tmp_path):
    (tmp_path / ".step-000000009.part").mkdir()
    assert checkpoint.newest(tmp_path) is None


def test_a_full_disk_keeps_the_one_before_and_says_how_much_is_missing(tmp_path):
    program = (
        "import resource, numpy as np\n"
        "from pathlib import Path\n"
        "from models.training import checkpoint\n"
        "from fourstage.errors import EnvironmentFault\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "checkpoint.write(folder, 1, [np.zeros(10)], {})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    checkpoint.write(folder, 2, [np.zeros(1_000_000)], {})\n"
        "except EnvironmentFault as fault:\n"
        "    print(fault)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "no space for a checkpoint of 8 MB" in ran.stdout
    assert checkpoint.written_steps(tmp_path) == [1]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000
