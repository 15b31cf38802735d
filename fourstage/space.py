"""Finds out which resource ran short, when servers and libraries only say that they failed."""

from __future__ import annotations

import errno
import resource
import tempfile
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OPEN_FILES = 256  # 64 were enough for a small run
TRIED = 32 << 20  # bytes; more than our databases allocate at a time


def too_many_open_files() -> str:
    """The limit behind ``EMFILE``, and what to do about it."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"too many open files: this process may have {most}; allow {OPEN_FILES} (`ulimit -n`)"


def taken(folder: Path) -> int:
    """Total bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def no_space(folder: Path) -> str:
    """Why a file of `TRIED` bytes cannot be written to an existing folder; empty if it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(TRIED))
            file.flush()
    except OSError as error:
        if error.errno in FULL:
            return f"no space for {TRIED / 1e6:.0f} MB in {folder} ({error.strerror})"
    return ""
