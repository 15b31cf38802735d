"""Garbage collection: removes store entries that are unreachable.

An entry is reachable from a version's package or evaluation, from the last finished run of a
recipe, or from an entry made or used recently. While a run is going on, what was made or used since
it began counts as recent: its finished stages are reachable only once it is over. Everything else
can be made again.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fourstage.space import taken
from tasks.registry.stage_files import COPIES, copying
from tasks.registry.versions import EVALUATION_TAG
from tasks.store.artifacts import MANIFEST, UNFINISHED, Store
from tasks.store.history import remembered
from tasks.store.registry_memory import every_remembered_version
from tasks.tracking.connection import Tracking, answered, every
from tasks.tracking.orphans import going_on
from tasks.tracking.tags import KEY

DAY = 86_400.0
HOLDER = re.compile(r"process (?P<pid>\d+) on (?P<host>.+)")  # what a lock says of its holder


@dataclass(frozen=True)
class Waste:
    """A file or folder that may be removed.

    Attributes:
        kind: Kind of the entry, or ``checkpoints``, ``versions`` or ``logs``.
        name: Name of its step, if known.
        path: The folder or file.
        size: Bytes on disk.
        why: The reason, in a few words.
        used: Last use of an entry or a copy when it was judged, in seconds since 1970.
        lock: Lock of whoever writes a copy; that of an entry lies beside it.
    """

    kind: str
    name: str
    path: Path
    size: int
    why: str
    used: float = math.inf
    lock: Path | None = None


def find_waste(store: Store, tracking: Tracking, keep_days: float) -> list[Waste]:
    """Find removable files and folders. Changes nothing.

    Args:
        store: The store.
        tracking: Connection to the registry of versions.
        keep_days: Entries made or used within this many days are kept, with their ancestors, and
            those of runs that are going on.
    """
    since = time.time() - keep_days * DAY
    if (begun := _begun(store, tracking)) < since:
        since = begun
        day = datetime.fromtimestamp(begun).isoformat(" ", timespec="minutes")
        store.say(f"a run that began {day} is going on: what was made or used since then is kept")
    parents: dict[Path, list[Path]] = {}
    names: dict[Path, str] = {}
    wanted: list[Path] = []
    folders = [path for path in sorted(store.root.glob("*/*")) if path.is_dir()]
    for folder in folders:
        facts = _facts(folder / MANIFEST)
        names[folder] = str(facts.get("name", ""))
        parents[folder] = [
            store.folder(parent["kind"], parent["key"])
            for parent in facts.get("inputs", {}).values()
        ]
        if _last_used(folder) >= since:
            wanted.append(folder)
    wanted += [store.folder(kind, key) for kind, key in _roots(tracking)]
    reached = _reached(wanted, parents)
    return [
        *_unreached(folders, reached, names, keep_days),
        *_leftover_checkpoints(folders, reached, names),
        *_old_copies(store.home / COPIES, tracking, since, keep_days),
        *_old_logs(store.home / "logs", since, keep_days),
    ]


def remove(store: Store, waste: Iterable[Waste]) -> list[Waste]:
    """Remove items one by one, except entries whose lock is held.

    Returns:
        The removed items.
    """
    gone = []
    for item in waste:
        if item.kind == "logs":
            item.path.unlink(missing_ok=True)
        elif not _remove_alone(item):
            store.say(f"{item.kind} {item.path.name[:12]} is in use: kept")
            continue
        gone.append(item)
    return gone


def _begun(store: Store, tracking: Tracking) -> float:
    """When the oldest run of this home began that is going on, in seconds since 1970, or infinity.

    A run that MLflow does not know, such as one with another server, is known by its lock.
    """
    runs = (run.info.start_time / 1000 for run in going_on(tracking))
    held = filter(None, map(_held_since, store.root.glob("*/*.lock")))
    return min((*runs, *held), default=math.inf)


def _held_since(path: Path) -> float | None:
    """When the process began that holds a lock, or at least when it took it; None if none does."""
    import psutil

    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            with suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            taken_at = path.stat().st_mtime
            holder = HOLDER.fullmatch(stream.read(300).strip())
    except FileNotFoundError:  # its entry was removed
        return None
    if holder is None or holder["host"] != socket.gethostname():
        return taken_at
    try:
        return min(taken_at, psutil.Process(int(holder["pid"])).create_time())
    except psutil.Error:  # of another container with this host's name
        return taken_at


@answered
def _roots(tracking: Tracking) -> list[tuple[str, str]]:
    """Kind and key of the artifacts of all versions and last runs.

    Versions in the home's own records count too, since MLflow's database may be lost or replaced.
    """
    roots = [(reference["kind"], reference["key"]) for reference in remembered()]
    for version in (
        *every_remembered_version(tracking.folder),
        *every(tracking.client.search_model_versions, "", max_results=1000),
    ):
        roots += _of_version(version.tags)
    return roots


def _of_version(tags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for kind, tag in (("package", KEY), ("evaluation", EVALUATION_TAG)):
        if tag in tags:
            yield kind, tags[tag]


def _reached(wanted: list[Path], parents: Mapping[Path, list[Path]]) -> set[Path]:
    reached: set[Path] = set()
    while wanted:
        folder = wanted.pop()
        if folder not in reached:
            reached.add(folder)
            wanted += parents.get(folder, [])
    return reached


def _unreached(
    folders: list[Path], reached: set[Path], names: Mapping[Path, str], keep_days: float
) -> Iterator[Waste]:
    for folder in folders:
        if folder not in reached:
            state = "not used" if (folder / MANIFEST).exists() else "unfinished, untouched"
            why = f"{state} for {keep_days:g} days"
            used = _last_used(folder)
            yield Waste(folder.parent.name, names[folder], folder, taken(folder), why, used)


def _leftover_checkpoints(
    folders: list[Path], reached: set[Path], names: Mapping[Path, str]
) -> Iterator[Waste]:
    for folder in folders:
        path = folder / UNFINISHED
        if folder in reached and path.is_dir() and (folder / MANIFEST).exists():
            yield Waste(UNFINISHED, names[folder], path, taken(path), "its entry is finished")


def _old_copies(
    folder: Path, tracking: Tracking, since: float, keep_days: float
) -> Iterator[Waste]:
    for path in sorted(folder.glob("[0-9a-f]*")):
        if path.is_dir() and (used := _last_used(path)) < since:
            why = f"not used for {keep_days:g} days, and copied again where it is asked for"
            lock = tracking.lock_file(copying(path.name))
            yield Waste(COPIES, path.name[:12], path, taken(path), why, used, lock)


def _old_logs(folder: Path, since: float, keep_days: float) -> Iterator[Waste]:
    for path in sorted(folder.glob("[0-9]*.log")):
        stat = path.stat()
        if stat.st_mtime < since:
            yield Waste("logs", path.name, path, stat.st_size, f"older than {keep_days:g} days")


def _remove_alone(item: Waste) -> bool:
    """Remove an entry, manifest first, or its checkpoints or a copy, under its writer's lock.

    Returns:
        Whether it was removed; not if a process holds the lock or has used the entry since it was
        judged.
    """
    whole = item.kind != UNFINISHED
    folder = item.path if whole else item.path.parent
    lock = item.lock or folder.with_name(f"{folder.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if _last_used(item.path) > item.used:
            return False
        if whole:
            (folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(item.path)
        # Last: whoever makes a new lock must find nothing here. Only writers of entries make one.
        if whole and item.lock is None:
            lock.unlink(missing_ok=True)
    return True


def _facts(manifest: Path) -> Mapping:
    try:
        return json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _last_used(folder: Path) -> float:
    """Time of last use, in seconds since 1970. Each use touches a finished entry's manifest."""
    manifest = folder / MANIFEST
    if manifest.exists():
        return manifest.stat().st_mtime
    times = []
    for place, _, files in os.walk(folder):
        for name in (".", *files):
            with suppress(FileNotFoundError):  # of a checkpoint that is being replaced
                times.append((Path(place) / name).stat().st_mtime)
    return max(times, default=math.inf)
