"""Trainings that diverged, remembered beside their checkpoints until they are finished.

The key of a stage determines its training, so a search need not try it twice.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from fourstage.digests import write_atomically
from tasks.store.artifacts import UNFINISHED

FILE = "diverged.json"


def remember_divergence(folder: Path, message: str) -> None:
    """Note that a training diverged.

    Args:
        folder: Folder of the stage in the store.
        message: At which step, and what was found.
    """
    (folder / UNFINISHED).mkdir(parents=True, exist_ok=True)
    write_atomically(folder / UNFINISHED / FILE, json.dumps({"message": message}))


def remembered_divergence(folder: Path) -> str | None:
    """What a training that diverged said; None of one that did not. `gc` goes by last use."""
    path = folder / UNFINISHED / FILE
    try:
        message = json.loads(path.read_text("utf-8"))["message"]
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(message)
