"""What a pass over a corpus remembers of every document; on disk, so that memory stays flat."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

CACHE_KIB = 8192  # memory for a scratch database; the rest is left to the system's page cache


@contextmanager
def scratch_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A private database that is deleted at the end.

    It is written in one transaction that never ends, without a journal. After a kill the file is
    useless, and the next run deletes it.

    Args:
        path: The file in the meantime; it contains ids, so only its owner can read it.

    Raises:
        OSError: The disk is full or broken.
    """
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            _prepare(database)
            yield database
    except sqlite3.OperationalError as error:
        full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
        code = errno.ENOSPC if full else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error
    finally:
        path.unlink(missing_ok=True)


def database_in_memory() -> sqlite3.Connection:
    """The same in memory, for a few thousand rows."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    _prepare(database)
    return database


def _prepare(database: sqlite3.Connection) -> None:
    for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
        database.execute(f"PRAGMA {setting}")
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("BEGIN")


class SeenDocuments:
    """The ids and texts of a corpus seen so far.

    Args:
        database: Where they are stored.
    """

    def __init__(self, database: sqlite3.Connection):
        self._database = database
        self.kept = 0  # documents so far
        database.execute("CREATE TABLE ids (id TEXT PRIMARY KEY) WITHOUT ROWID")
        database.execute(
            "CREATE TABLE texts (digest TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID"
        )
        database.execute(
            "CREATE TABLE documents (number INTEGER PRIMARY KEY, id TEXT, duplicates INTEGER)"
        )

    def is_new(self, identity: str) -> bool:
        """Add an id; whether it is new."""
        done = self._database.execute("INSERT OR IGNORE INTO ids VALUES (?)", (identity,))
        return done.rowcount == 1

    def number_of(self, digest: str) -> int | None:
        """The number of the kept document with this digest."""
        found = self._database.execute("SELECT number FROM texts WHERE digest = ?", (digest,))
        row = found.fetchone()
        return None if row is None else row[0]

    def keep(self, identity: str, digest: str) -> None:
        """Add a document; the first has number 0."""
        self._database.execute("INSERT INTO texts VALUES (?, ?)", (digest, self.kept))
        self._database.execute("INSERT INTO documents VALUES (?, ?, 0)", (self.kept, identity))
        self.kept += 1

    def repeat(self, number: int) -> str:
        """Count a duplicate of a document; returns the document's id."""
        found = self._database.execute(
            "UPDATE documents SET duplicates = duplicates + 1 WHERE number = ? RETURNING id",
            (number,),
        )
        return found.fetchone()[0]

    def repetitions(self, start: int, count: int) -> list[int]:
        """The number of duplicates of each of `count` documents from `start` on."""
        found = self._database.execute(
            "SELECT duplicates FROM documents WHERE number >= ? AND number < ? ORDER BY number",
            (start, start + count),
        )
        return [row[0] for row in found]
