"""The ledger of a preparation: what was read, what was kept, and why the rest was rejected."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from corpora.snapshot import Snapshot
from data_contracts.records import Rejected
from data_contracts.sources import Source
from fourstage.digests import unfinished, write_atomically

_FIRST = 20  # ids of mended rows that the counts name; the ledger has them all


@dataclass
class Counts:
    """Number of records by outcome; ``read = kept + Σ quarantined + Σ removed`` always holds.

    Attributes:
        read: Records that the reader saw.
        kept: Documents or rows written.
        quarantined: Records that broke a promise, by reason.
        removed: Records that a rule removed, by reason.
        details: Further counts: splits, characters removed by kind, overlap, mended answers…
    """

    read: int = 0
    kept: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Check that the counts add up."""
        gone = sum(self.quarantined.values()) + sum(self.removed.values())
        assert self.read == self.kept + gone, (self.read, self.kept, self.quarantined, self.removed)

    def to_json(self) -> dict[str, Any]:
        """The counts as plain JSON, reasons sorted."""
        self.check()
        return {
            "read": self.read,
            "kept": self.kept,
            "quarantined": dict(sorted(self.quarantined.items())),
            "removed": dict(sorted(self.removed.items())),
            **self.details,
        }


class RejectionLog:
    """Writes ``rejected.jsonl`` and counts its records; rows kept with a corrected answer, too.

    Args:
        folder: Where the file goes; only its owner can read it.
    """

    def __init__(self, folder: Path):
        self._path = folder / "rejected.jsonl"
        self._temporary = unfinished(self._path)
        self.counts = Counts()
        self._quarantined: Counter[str] = Counter()
        self._removed: Counter[str] = Counter()
        self._mended: dict[str, dict[str, Any]] = {}
        self.first: dict[str, str] = {}  # the first location of each reason

    def __enter__(self) -> RejectionLog:
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")
        return self

    def reject(self, rejected: Rejected) -> None:
        """Record one quarantined record."""
        counter = self._quarantined if rejected.severity == "quarantined" else self._removed
        counter[rejected.reason] += 1
        self.first.setdefault(rejected.reason, rejected.location)
        self._write(rejected)

    def remove(self, identity: str, location: str, reason: str, detail: str = "") -> None:
        """Record one record that a rule removes."""
        self.reject(Rejected(identity, location, reason, "removed", detail))

    def mend(self, identity: str, location: str, what: str) -> None:
        """Record a row that is kept with a corrected answer."""
        known = self._mended.setdefault(what, {"count": 0, "first_ids": []})
        known["count"] += 1
        if len(known["first_ids"]) < _FIRST:
            known["first_ids"].append(identity)
        self._write(Rejected(identity, location, what, "mended"))

    def _write(self, rejected: Rejected) -> None:
        self._stream.write(json.dumps(asdict(rejected), ensure_ascii=False) + "\n")

    def finish(self, kept: int) -> Counts:
        """Check the counts and write them next to the rejections."""
        counts = self.counts
        counts.kept = kept
        counts.quarantined = dict(self._quarantined)
        counts.removed = dict(self._removed)
        if self._mended:
            counts.details["mended"] = dict(sorted(self._mended.items()))
        text = json.dumps(counts.to_json(), indent=1, ensure_ascii=False)
        write_atomically(self._path.with_name("counts.json"), text + "\n")
        return counts

    def summary(self) -> str:
        """Every reason with its count and first location, for a message."""
        reasons = self._quarantined + self._removed
        return "; ".join(
            f"{count} × {reason} (first at {self.first[reason]})"
            for reason, count in reasons.most_common(5)
        )

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stream.close()
        if kind is None:
            os.replace(self._temporary, self._path)
        else:
            self._temporary.unlink(missing_ok=True)


def nothing_left(source: Source, snapshot: Snapshot, ledger: RejectionLog) -> str:
    """The message for a source without a single document or row."""
    empty = [file.path for file in snapshot.files if not file.size]
    if not ledger.counts.read or len(empty) == len(snapshot.files):
        files = ", ".join((empty or [file.path for file in snapshot.files])[:5])
        return (
            f"source {source.name}: expected at least one record, got none: "
            f"{files} {'is empty (0 bytes)' if empty else 'holds none'}; give it records, "
            "or take it out of 'files'."
        )
    keys = ["fields", "answers", "encoding", "format"]
    keys[2:2] = ["tag_scheme", "span_ends"] if source.answers == "spans" else []
    named = ", ".join(map(repr, keys[:-1]))
    return (
        f"source {source.name}: nothing is left of {ledger.counts.read:,} records: "
        f"{ledger.summary()}; mend the files, or correct the source's {named} or {keys[-1]!r}."
    )
