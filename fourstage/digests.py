"""Digests of files and of plain values, the ground every key stands on."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 1 << 20


def canonical(value: Any) -> str:
    """JSON text that equal values share, whatever their dictionaries' order.

    Raises:
        TypeError: For anything that is not plain JSON; a key must not depend on a ``repr``.
        ValueError: For NaN and infinity.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def digest(value: Any) -> str:
    """sha256 (64 hex digits) of the canonical JSON of a plain value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def hash_file(path: Path) -> str:
    """sha256 of a file's bytes, read in pieces of a megabyte."""
    state = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            state.update(chunk)
    return state.hexdigest()


class DigestCache:
    """File digests remembered by path, size, times and inode.

    Args:
        path: The JSON lines file that holds them; one torn line costs one digest, nothing else.
    """

    def __init__(self, path: Path):
        self.path = path
        self._known: dict[str, tuple[str, str]] = {}
        if path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            for name, state, value in _records(lines):
                self._known[name] = (state, value)

    def of(self, path: Path) -> str:
        """Digest of the file as it is now."""
        stat = path.stat()
        name = str(path)
        # The change time as well: the modification time can be set back, as copies and archives do.
        state = f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ctime_ns}-{stat.st_ino}"
        known = self._known.get(name)
        if known and known[0] == state:
            return known[1]
        value = hash_file(path)
        self._known[name] = (state, value)
        # Where nothing can be written, as in somebody else's home, it is read again next time.
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # One short line in append mode is written whole: processes do not disturb each other.
            with open(self.path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps([name, state, value]) + "\n")
        return value


def _records(lines: list[str]) -> list[tuple[str, str, str]]:
    """The lines that are whole; all at once where all are, which is ten times as fast."""
    try:
        return [(name, state, value) for name, state, value in json.loads(f"[{','.join(lines)}]")]
    except (ValueError, TypeError):
        pass
    found = []
    for line in lines:
        try:
            name, state, value = json.loads(line)
        except (ValueError, TypeError):
            continue
        found.append((name, state, value))
    return found


def unfinished(path: Path) -> Path:
    """A name beside a file for what is not whole yet.

    No other process uses it: two machines, or containers, that share a folder share process ids.
    """
    return path.with_name(f".{path.name}.{socket.gethostname()}-{secrets.token_hex(8)}")


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unfinished(path)
    with open(temporary, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, mode)) as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)
