"""What costs much and is only read is made by one worker, for all of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest


def made_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]
) -> Path:
    """Folder of that name, filled by the first worker that needs it; the others wait.

    Args:
        tmp_path_factory: Pytest's.
        name: Of the folder, beside those of the workers.
        make: Fills it.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    made = folder.with_suffix(".made")
    with open(folder.with_suffix(".lock"), "w") as lock:
        flock(lock, LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
