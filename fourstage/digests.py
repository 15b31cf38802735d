"""Digests of files and of plain values, from which all keys are made."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CHUNK = 1 << 20


def canonical(value: object) -> str:
    """JSON text that is the same for equal values, whatever the order of their dictionaries.

    Raises:
        TypeError: The value is not plain JSON; a key must not depend on a ``repr``.
        ValueError: The value contains NaN or infinity.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def digest(value: object) -> str:
    """sha256 (64 hex digits) of the canonical JSON of a plain value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def hash_file(path: Path) -> str:
    """sha256 of a file's bytes, read a megabyte at a time."""
    state = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            state.update(chunk)
    return state.hexdigest()


class DigestCache:
    """A cache of digests, of files by path, size, times and inode.

    Args:
        path: The JSON lines file that stores them; a torn line costs one digest and nothing else.
    """

    def __init__(self, path: Path):
        self.path = path
        self._known: dict[str, tuple[str, str]] = {}
        if path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            for name, state, value in _records(lines):
                self._known[name] = (state, value)

    def of(self, path: Path) -> str:
        """The digest of the file's current content."""
        stat = path.stat()
        # The change time, too: copies and archives can reset the modification time.
        state = f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ctime_ns}-{stat.st_ino}"
        return self.remembered(str(path), state, lambda: hash_file(path))

    def remembered(self, name: str, state: str, compute: Callable[[], str]) -> str:
        """The digest of what has this name: the one known if the state is still the same."""
        known = self._known.get(name)
        if known and known[0] == state:
            return known[1]
        value = compute()
        self._known[name] = (state, value)
        # If the cache cannot be written, as in somebody else's home, it is computed again next
        # time.
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A short line in append mode is written atomically: processes do not interfere.
            with open(self.path, "a", encoding="utf-8") as stream:
                stream.write(json.dumps([name, state, value]) + "\n")
        return value


def _records(lines: list[str]) -> list[tuple[str, str, str]]:
    """The intact lines; parsed all at once if all are intact, which is ten times as fast."""
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
    """A name next to a file for an incomplete version of it.

    No other process uses the name. A process id would not do: machines or containers that share a
    folder may have the same ones.
    """
    return path.with_name(f".{path.name}.{socket.gethostname()}-{secrets.token_hex(8)}")


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unfinished(path)
    with open(temporary, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, mode)) as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)
