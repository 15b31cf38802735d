"""What holds after every fault, whatever it was."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

from fourstage.errors import GateRefused
from tasks.store.artifacts import MANIFEST, Artifact, Store
from tests.flows.own_project import CANARY
from tests.flows.person import Answer

# Where a user's text may lie: the store's own copies and what was learned from them.
TEXT = ("documents.arrow", "rows.arrow", "vocab", "digests.jsonl")


def what_always_holds(home: Path, answer: Answer, code: int, *patterns: str) -> None:
    """Exit code, message, secrecy, no half-made entry, no run left running, nothing uncounted.

    Args:
        home: Whose run it was.
        answer: What the command said.
        code: The exit code it must have.
        patterns: Regular expressions that standard error must hold.
    """
    assert answer.code == code, answer.told()
    assert "Traceback" not in answer.err, answer.told()
    assert "internal error" not in answer.err, answer.told()
    assert CANARY not in (answer.err + answer.out).casefold()
    for pattern in patterns:
        assert re.search(pattern, answer.err), f"no {pattern!r} in\n{answer.told()}"
    if code:
        assert answer.err.strip(), "an error without a word"
    if code not in (0, GateRefused.exit_code):  # a refusal is an answer, with its reasons
        assert answer.out == "", answer.told()
    assert running(home) == 0
    no_half_made_entry(home)
    everything_is_counted(home)
    no_text_outside_the_store(home)


def running(home: Path) -> int:
    """MLflow runs that are still RUNNING."""
    database = home / "mlflow.db"
    if not database.exists():
        return 0
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        (count,) = connection.execute(
            "select count(*) from runs where status = 'RUNNING'"
        ).fetchone()
    return count


def no_half_made_entry(home: Path) -> None:
    """Every manifest belongs to an entry that is whole."""
    store = Store(home)
    for manifest in store.root.glob(f"*/*/{MANIFEST}"):
        found = store.find(manifest.parent.parent.name, manifest.parent.name)
        assert isinstance(found, Artifact), found


def everything_is_counted(home: Path) -> None:
    """Read = kept + quarantined + removed, in every count."""
    for path in (home / "store").glob("*/*/counts.json"):
        counts = json.loads(path.read_text(encoding="utf-8"))
        parts = sum(counts["quarantined"].values()) + sum(counts["removed"].values())
        assert counts["read"] == counts["kept"] + parts, path


# Files without the canary: path → place on the disk, time and size when they were read.
_clean: dict[Path, tuple[int, int, int]] = {}


def no_text_outside_the_store(home: Path) -> None:
    """The canary stands in no log, page, database or report.

    A home is looked through after every fault: what is as it was is not read again.
    """
    for path in home.rglob("*"):
        if path.is_file() and not path.name.startswith(TEXT):
            found = path.stat()
            state = found.st_ino, found.st_mtime_ns, found.st_size
            if _clean.get(path) != state:
                assert CANARY.encode() not in path.read_bytes().lower(), path.relative_to(home)
                _clean[path] = state
