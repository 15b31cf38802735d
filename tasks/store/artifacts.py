"""Artifacts and the content-addressed store. Steps exchange nothing but artifacts.

An entry is a folder ``store/<kind>/<key>/`` with a ``manifest.json``, which is written last and
atomically. A folder without a manifest is unfinished. An entry whose outputs differ from its
manifest is damaged. Both count as missing. The key is a digest of everything that determines the
outputs, so an entry never changes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TextIO

from fourstage.digests import DigestCache, digest, write_atomically
from fourstage.errors import EnvironmentFault
from fourstage.settings import home
from fourstage.terminal import say
from tasks.store.predictions import WORD_REGIONS

MANIFEST = "manifest.json"
UNFINISHED = "checkpoints"  # removed when an entry is finished
GONE = ("never made", "unfinished")  # reasons for an entry to be missing that are no damage
NOTES = "notes/"  # measurements of the run (seconds, speed): stored and verified, in no digest


@dataclass(frozen=True)
class Findings:
    """Metadata that a step's work returns for the manifest.

    Attributes:
        facts: Reproducible properties of the outputs: counts, labels, scores. Part of the digest,
            so later steps may read them.
        notes: Properties of the run: seconds, speed, names, addresses. In no digest, for people
            only.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Input:
    """A finished entry as a later step may read it: only what its digest covers.

    Attributes:
        kind: ``corpus``, ``tokenizer``, ``stage``, …
        digest: Digest of kind, outputs and facts. Entries with different keys can share it.
        folder: Folder of the outputs.
        outputs: sha256 of each file by its path in the folder.
        facts: As in `Findings`.
    """

    kind: str
    digest: str
    folder: Path
    outputs: Mapping[str, str]
    facts: Mapping[str, Any]

    def path(self, name: str) -> Path:
        """File of an output. A missing one is a bug, not a user error."""
        assert name in self.outputs or any(o.startswith(f"{name}/") for o in self.outputs), name
        return self.folder / name


@dataclass(frozen=True)
class Artifact(Input):
    """A finished entry of the store with its full manifest.

    Attributes:
        key: Digest of the preimage.
        name: Name of its step in the recipe that made it.
        notes: As in `Findings`, plus the commit and the process that made it.
        inputs: Kind, key, digest and name of each input, by role.
        preimage: Everything that determines the outputs, as plain JSON.
        created: UTC time, ISO 8601.
    """

    key: str
    name: str
    notes: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, str]]
    preimage: Mapping[str, Any]
    created: str

    @property
    def reference(self) -> dict[str, str]:
        """Kind, key and digest, as recorded by Prefect and by other manifests."""
        return {"kind": self.kind, "key": self.key, "digest": self.digest}

    def as_input(self) -> Input:
        """The part that its digest covers, for a step that reads it."""
        outputs = {name: value for name, value in self.outputs.items() if _is_output(name)}
        return Input(self.kind, self.digest, self.folder, outputs, self.facts)


@dataclass(frozen=True)
class Missing:
    """An entry that can't be used. Reason: ``never made``, ``unfinished`` or the damage."""

    kind: str
    key: str
    reason: str


@dataclass
class Store:
    """The store under a home folder.

    Args:
        home: ``$FOURSTAGE_HOME``.
        say: Called with messages for the user: waiting for a lock, damage found.
    """

    home: Path
    say: Callable[[str], None] = field(default=lambda message: None)

    @property
    def root(self) -> Path:
        """Folder of all entries."""
        return self.home / "store"

    @cached_property
    def digests(self) -> DigestCache:
        """Cached digests of files, both outputs and sources."""
        return DigestCache(self.home / "digests.jsonl")

    def folder(self, kind: str, key: str) -> Path:
        """Folder of an entry, finished or not."""
        return self.root / kind / key

    def find(self, kind: str, key: str) -> Artifact | Missing:
        """Find an entry and verify every output against its manifest."""
        folder = self.folder(kind, key)
        manifest = folder / MANIFEST
        try:
            written = json.loads(manifest.read_text(encoding="utf-8"))
            artifact = Artifact(folder=folder, **_fields(written))
            whole = artifact.key == key == digest(dict(artifact.preimage))
            whole = whole and artifact.digest == content_digest(
                artifact.kind, artifact.outputs, artifact.facts
            )
        except FileNotFoundError:
            return Missing(kind, key, "unfinished" if folder.exists() else "never made")
        except (ValueError, KeyError, TypeError, AttributeError):
            artifact, whole = None, False
        if artifact is None or not whole:
            return Missing(kind, key, f"unreadable manifest {self._short(manifest)}")
        for name, expected in artifact.outputs.items():
            path = folder / name
            if not path.is_file():
                return Missing(kind, key, f"output missing: {self._short(path)}")
            if self.digests.of(path) != expected:
                return Missing(kind, key, f"output damaged: {self._short(path)}")
        return artifact

    def mark_used(self, artifact: Artifact) -> None:
        """Set the manifest's modification time to now: the garbage collector goes by last use."""
        # The kernel's own stamp is as coarse as its tick: two uses within it would be one moment.
        now = time.time_ns()
        os.utime(artifact.folder / MANIFEST, ns=(now, now))

    def entries(self, kind: str) -> Iterator[Artifact]:
        """All finished entries of a kind, oldest first. Outputs are not verified."""
        found = []
        for manifest in (self.root / kind).glob(f"*/{MANIFEST}"):
            try:
                written = json.loads(manifest.read_text(encoding="utf-8"))
                found.append(Artifact(folder=manifest.parent, **_fields(written)))
            except FileNotFoundError:
                continue  # removed in the meantime, by `gc` or to be made anew
            except (ValueError, KeyError, TypeError):
                self.say(f"unreadable manifest {self._short(manifest)}: passed over")
        yield from sorted(found, key=lambda artifact: artifact.created)

    def make(
        self,
        kind: str,
        name: str,
        preimage: Mapping[str, Any],
        work: Callable[[Path], Findings],
        inputs: Mapping[str, Artifact] | None = None,
    ) -> tuple[Artifact, bool]:
        """Find an entry or make it. Each key has one writer; others wait and reuse the entry.

        Args:
            kind: Kind of the entry.
            name: Name of its step.
            preimage: Plain JSON that determines the outputs.
            work: Writes the outputs into the given folder and returns the manifest's metadata.
            inputs: The input artifacts by role, for lineage.

        Returns:
            The artifact, and whether this call made it.

        Raises:
            EnvironmentFault: The store can't be written, or the lock was lost.
        """
        key = digest(dict(preimage))
        folder = self.folder(kind, key)
        with self._only_writer(kind, key) as still_ours:
            there = self.find(kind, key)
            if isinstance(there, Artifact):
                return there, False
            if there.reason not in GONE:
                self.say(f"{name}: {there.reason}; made again")
                shutil.rmtree(folder)
            self._clear_unfinished(folder)
            folder.mkdir(parents=True, exist_ok=True)
            found = work(folder)
            checkpoints = folder / UNFINISHED
            files = [
                path
                for path in sorted(folder.rglob("*"))
                if path.is_file() and checkpoints not in path.parents
            ]
            for path in filter(_has_rows, files):
                path.chmod(0o600)
            outputs = {str(path.relative_to(folder)): self.digests.of(path) for path in files}
            # Through JSON, so that the digest is the same when the facts are read back.
            facts = json.loads(json.dumps(dict(found.facts)))
            manifest = {
                "kind": kind,
                "key": key,
                "digest": content_digest(kind, outputs, facts),
                "name": name,
                "outputs": outputs,
                "facts": facts,
                "notes": dict(found.notes),
                "inputs": {
                    role: {**artifact.reference, "name": artifact.name}
                    for role, artifact in (inputs or {}).items()
                },
                "preimage": dict(preimage),
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            if not still_ours():
                raise EnvironmentFault(
                    f"{name}: the lock of {kind} {key[:12]} was removed while the entry was being"
                    " made, so the entry is not committed; run again"
                )
            write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False))
            shutil.rmtree(checkpoints, ignore_errors=True)
        return Artifact(folder=folder, **_fields(manifest)), True

    def _clear_unfinished(self, folder: Path) -> None:
        """Remove the files of a killed writer, except its checkpoints."""
        if not folder.exists():
            return
        for path in folder.iterdir():
            if path.name == UNFINISHED:
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    @contextmanager
    def _only_writer(self, kind: str, key: str) -> Iterator[Callable[[], bool]]:
        """Hold the key's lock. Yields a check that the lock is still held.

        The kernel releases `flock` whenever the holder dies. The filelock package would add only a
        fallback for systems without `flock`, whose lock files outlive their holders.
        """
        path = self.root / kind / f"{key}.lock"
        stream = self._open_lock(path)
        waited = False
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not waited:
                    stream.seek(0)
                    holder = stream.read().strip() or "another process"
                    self.say(f"waiting for {holder}, which is making {kind} {key[:12]}")
                    waited = True
                time.sleep(0.5)
                continue
            if _is_file_at(stream, path):
                break
            # The lock file was removed with its entry while we waited: this lock guards nothing.
            stream.close()
            stream = self._open_lock(path)
        with stream:
            stream.seek(0)
            stream.truncate()
            stream.write(f"process {os.getpid()} on {socket.gethostname()}")
            stream.flush()
            yield lambda: _is_file_at(stream, path)

    def _open_lock(self, path: Path) -> TextIO:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return open(path, "a+", encoding="utf-8")
        except OSError as error:
            raise EnvironmentFault(
                f"the store {self.root} can't be written by user {os.getuid()}: {error.strerror}. "
                "Set FOURSTAGE_HOME to a folder of yours."
            ) from error

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self.home))


def _is_file_at(stream: TextIO, path: Path) -> bool:
    """Whether an open file is still the file at a path."""
    try:
        return path.stat().st_ino == os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False


def _fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: manifest[name] for name in Artifact.__dataclass_fields__ if name != "folder"}


def content_digest(kind: str, outputs: Mapping[str, str], facts: Mapping[str, Any]) -> str:
    """Digest of the outputs and facts, without notes."""
    files = {name: value for name, value in outputs.items() if _is_output(name)}
    return digest({"kind": kind, "outputs": files, "facts": dict(facts)})


def _has_rows(path: Path) -> bool:
    """Whether a file has answers to rows, which may be texts, or words of rows.

    It is for its owner alone. Files of the texts themselves are written so from the start.
    """
    return path.suffix == ".parquet" or path.name == WORD_REGIONS


def _is_output(name: str) -> bool:
    return not name.startswith(NOTES)


def store() -> Store:
    """The store in the home folder."""
    return _opened(home())


@cache
def _opened(home: Path) -> Store:
    """One store for each home, so that its digests are read from disk once."""
    return Store(home, say=say)


def tokenizer_in_store(stage: Path) -> Path | None:
    """The folder of a stage's tokenizer, if both are in the same store."""
    try:
        manifest = json.loads((stage / MANIFEST).read_text("utf-8"))
        key = manifest["inputs"]["tokenizer"]["key"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stage.parent.parent / "tokenizer" / str(key)
