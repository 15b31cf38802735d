"""The state of one file at the start of a run; a later change to it is an error."""

from __future__ import annotations

import os
from dataclasses import dataclass

from data_contracts.records import Split
from fourstage.errors import ContractViolation


@dataclass(frozen=True)
class FileState:
    """One file as it was when the snapshot was taken.

    Attributes:
        split: The split it is listed under; None if Fourstage splits the data.
        path: Absolute path, or an address.
        size: Bytes.
        mtime_ns: Time of the last modification; 0 for an address.
        inode: Inode number; 0 for an address.
        sha256: Digest of its bytes.
        name: Its name in ids and locations.
        members: Pattern of the archive members to read; empty for all.
    """

    split: Split | None
    path: str
    size: int
    mtime_ns: int
    inode: int
    sha256: str
    name: str
    members: str = ""


def check_unchanged(state: FileState, stat: os.stat_result) -> None:
    """Check that a file is still the one of the snapshot.

    Raises:
        ContractViolation: Its size, time or inode differs.
    """
    if (stat.st_size, stat.st_mtime_ns, stat.st_ino) != (state.size, state.mtime_ns, state.inode):
        raise ContractViolation(
            f"{state.path}: changed while being read: {state.size:,} bytes when the run started, "
            f"{stat.st_size:,} now; run again once nothing writes to it."
        )
