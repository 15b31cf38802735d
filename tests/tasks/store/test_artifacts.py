"""The content-addressed store: what counts as finished, who may write, what a digest is made of."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest

from fourstage.digests import digest
from fourstage.errors import EnvironmentFault
from fourstage.settings import REPOSITORY
from tasks.store.artifacts import MANIFEST, Artifact, Findings, Missing, Store
from tasks.store.predictions import PREDICTIONS, WORD_REGIONS

PREIMAGE = {"kind": "corpus", "settings": {"source": "notes"}}
KEY = digest(PREIMAGE)

WRITER = """
import json, sys, time
from pathlib import Path
from tasks.store.artifacts import Findings, Store

def work(folder):
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    (folder / "half").write_text("half")
    while not Path(sys.argv[3]).exists():
        time.sleep(0.02)
    (folder / "words.txt").write_text("one two")
    return Findings()

store = Store(Path(sys.argv[1]), say=lambda line: print(line, flush=True))
artifact, ours = store.make("corpus", "corpus notes", json.loads(sys.argv[4]), work)
print(artifact.digest, ours, flush=True)
"""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, said: list[str]) -> Store:
    return Store(tmp_path / "我的 home", say=said.append)


def write_words(folder: Path) -> Findings:
    (folder / "words.txt").write_text("one two", encoding="utf-8")
    (folder / "inner").mkdir()
    (folder / "inner" / "more.txt").write_text("three", encoding="utf-8")
    return Findings({"words": 3})


def made(store: Store) -> Artifact:
    return store.make("corpus", "corpus notes", PREIMAGE, write_words)[0]


def writer(store: Store, log: Path, until: Path) -> subprocess.Popen[str]:
    """A process that makes an entry, and works until a file is there."""
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            WRITER,
            str(store.home),
            str(log),
            str(until),
            json.dumps(PREIMAGE),
        ],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_entry_is_found_again_as_it_was_made(store: Store):
    artifact, ours = store.make("corpus", "corpus notes", PREIMAGE, write_words)
    assert ours
    assert artifact.key == KEY
    assert set(artifact.outputs) == {"words.txt", "inner/more.txt"}
    again, ours = store.make("corpus", "corpus notes", PREIMAGE, write_words)
    assert not ours
    assert again == artifact
    assert store.find("corpus", KEY) == artifact


def test_the_manifest_is_written_after_every_output(store: Store):
    there: list[bool] = []

    def work(folder: Path) -> Findings:
        there.append((folder / MANIFEST).exists())
        return write_words(folder)

    artifact, _ = store.make("corpus", "corpus notes", PREIMAGE, work)
    assert there == [False]
    manifest = artifact.folder / MANIFEST
    assert manifest.stat().st_mtime_ns >= (artifact.folder / "words.txt").stat().st_mtime_ns
    assert sorted(path.name for path in artifact.folder.iterdir()) == [
        "inner",
        MANIFEST,
        "words.txt",
    ]


def test_nothing_made_and_unfinished_are_told_apart(store: Store):
    assert store.find("corpus", KEY) == Missing("corpus", KEY, "never made")
    store.folder("corpus", KEY).mkdir(parents=True)
    assert store.find("corpus", KEY) == Missing("corpus", KEY, "unfinished")


def damage_output(artifact: Artifact) -> None:
    (artifact.folder / "words.txt").write_text("one tvo", encoding="utf-8")


def truncate_output(artifact: Artifact) -> None:
    os.truncate(artifact.folder / "inner" / "more.txt", 2)


def remove_output(artifact: Artifact) -> None:
    (artifact.folder / "words.txt").unlink()


def truncate_manifest(artifact: Artifact) -> None:
    manifest = artifact.folder / MANIFEST
    os.truncate(manifest, manifest.stat().st_size // 2)


def empty_manifest(artifact: Artifact) -> None:
    os.truncate(artifact.folder / MANIFEST, 0)


def flip_a_bit_of_manifest(artifact: Artifact) -> None:
    manifest = artifact.folder / MANIFEST
    written = bytearray(manifest.read_bytes())
    written[10] ^= 0x80  # no longer UTF-8
    manifest.write_bytes(written)


def change_key(artifact: Artifact) -> None:
    _edit(artifact, key="0" * 64)


def change_preimage(artifact: Artifact) -> None:
    _edit(artifact, preimage={"kind": "corpus", "settings": {"source": "others"}})


def change_digest(artifact: Artifact) -> None:
    _edit(artifact, digest="0" * 64)


def list_in_place_of_manifest(artifact: Artifact) -> None:
    (artifact.folder / MANIFEST).write_text("[]", encoding="utf-8")


def _edit(artifact: Artifact, **changes: Any) -> None:
    manifest = artifact.folder / MANIFEST
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps(facts | changes), encoding="utf-8")


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (damage_output, "output damaged"),
        (truncate_output, "output damaged"),
        (remove_output, "output missing"),
        (truncate_manifest, "unreadable manifest"),
        (empty_manifest, "unreadable manifest"),
        (flip_a_bit_of_manifest, "unreadable manifest"),
        (change_key, "unreadable manifest"),
        (change_preimage, "unreadable manifest"),
        (change_digest, "unreadable manifest"),
        (list_in_place_of_manifest, "unreadable manifest"),
    ],
)
def test_a_damaged_entry_counts_as_missing_and_is_made_again(store, said, harm, reason):
    artifact = made(store)
    harm(artifact)
    found = store.find("corpus", KEY)
    assert isinstance(found, Missing)
    assert found.reason.startswith(reason)
    assert f"store/corpus/{KEY}" in found.reason  # where it lies, from the home on
    again = made(store)
    assert (again.digest, again.outputs) == (artifact.digest, artifact.outputs)
    assert isinstance(store.find("corpus", KEY), Artifact)
    assert any(reason in line for line in said)


def test_damage_is_seen_though_a_digest_was_remembered(store: Store):
    artifact = made(store)
    assert isinstance(Store(store.home).find("corpus", KEY), Artifact)
    path = artifact.folder / "words.txt"
    path.write_text("two one", encoding="utf-8")  # as long as it was
    assert isinstance(Store(store.home).find("corpus", KEY), Missing)


def test_what_a_killed_writer_left_is_cleared_but_its_checkpoints(store: Store):
    folder = store.folder("corpus", KEY)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "step-10").write_text("weights")
    (folder / "half").write_text("half")
    (folder / "inner").mkdir()
    seen: list[list[str]] = []

    def work(folder: Path) -> Findings:
        seen.append(sorted(str(p.relative_to(folder)) for p in folder.rglob("*")))
        return write_words(folder)

    artifact, _ = store.make("corpus", "corpus notes", PREIMAGE, work)
    assert seen == [["checkpoints", "checkpoints/step-10"]]
    assert not (folder / "checkpoints").exists()  # a finished entry keeps none
    assert set(artifact.outputs) == {"words.txt", "inner/more.txt"}


def test_work_that_fails_leaves_an_unfinished_entry(store: Store):
    def work(folder: Path) -> Findings:
        (folder / "half").write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.make("corpus", "corpus notes", PREIMAGE, work)
    assert store.find("corpus", KEY) == Missing("corpus", KEY, "unfinished")
    assert set(made(store).outputs) == {"words.txt", "inner/more.txt"}


def test_notes_are_kept_and_checked_but_change_no_digest(store: Store):
    def with_note(seconds: str):
        def work(folder: Path) -> Findings:
            (folder / "notes").mkdir()
            (folder / "notes" / "speed.json").write_text(seconds)
            return write_words(folder)

        return work

    fast, _ = store.make("stage", "stage a", {"run": 1}, with_note("1"))
    slow, _ = store.make("stage", "stage a", {"run": 2}, with_note("100"))
    assert fast.key != slow.key
    assert fast.digest == slow.digest
    (fast.folder / "notes" / "speed.json").write_text("7")
    found = store.find("stage", fast.key)
    assert isinstance(found, Missing)
    assert "notes/speed.json" in found.reason
    # A later step does not read what no digest covers.
    assert set(fast.as_input().outputs) == {"words.txt", "inner/more.txt"}


def test_equal_outputs_of_different_keys_share_a_digest_and_others_do_not(store: Store):
    first = made(store)
    second, _ = store.make("corpus", "corpus notes", {"other": True}, write_words)
    third, _ = store.make("corpus", "corpus notes", {"third": True}, lambda folder: Findings())
    assert first.digest == second.digest != third.digest
    assert len({first.key, second.key, third.key}) == 3


def test_facts_and_kind_are_part_of_the_digest(store: Store):
    """Later steps read the facts; with the same digest they would be reused for other ones."""

    def write(words: int) -> Callable[[Path], Findings]:
        return lambda folder: replace(write_words(folder), facts={"words": words})

    entries = [("corpus", 3), ("corpus", 4), ("dataset", 3)]
    made = [store.make(kind, "notes", {"n": n}, write(n))[0] for kind, n in entries]
    assert [artifact.outputs for artifact in made] == [made[0].outputs] * 3
    assert len({artifact.digest for artifact in made}) == 3


def test_facts_are_the_same_when_they_are_read_back(store: Store):
    """JSON has texts as keys and no tuples: 2 stands before 10, but "10" before "2"."""
    facts = {"rows": {2: 1, 10: 1}, "labels": ("a", "b")}
    artifact, _ = store.make("dataset", "rows", PREIMAGE, lambda folder: Findings(facts))
    assert artifact.facts == {"rows": {"2": 1, "10": 1}, "labels": ["a", "b"]}
    assert store.find("dataset", artifact.key) == artifact


def test_answers_to_rows_are_read_by_their_owner_alone(store: Store):
    """Of a head that writes or points into a text, answers are a user's text."""

    def evaluate(folder: Path) -> Findings:
        answers = {"id": ["1"], "label": ['["a user\'s summary"]'], "predicted": ['["a summary"]']}
        pandas.DataFrame(answers).to_parquet(folder / PREDICTIONS)
        (folder / WORD_REGIONS).write_text('["words of a row"]', encoding="utf-8")
        (folder / "measured.json").write_text("{}", encoding="utf-8")
        return Findings()

    usual = os.umask(0o022)
    try:
        artifact, _ = store.make("evaluation", "evaluation", PREIMAGE, evaluate)
    finally:
        os.umask(usual)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in artifact.folder.iterdir()}
    assert modes == {
        PREDICTIONS: 0o600,
        WORD_REGIONS: 0o600,
        "measured.json": 0o644,
        MANIFEST: 0o644,
    }
    assert isinstance(store.find("evaluation", artifact.key), Artifact)


def test_entries_come_in_the_order_they_were_made(store: Store, said: list[str]):
    for number, month in enumerate((3, 1, 2)):
        artifact, _ = store.make("corpus", f"corpus {number}", {"n": number}, write_words)
        _edit(artifact, created=f"2026-0{month}-01T00:00:00+00:00")
    unreadable, _ = store.make("corpus", "corpus 3", {"n": 3}, write_words)
    empty_manifest(unreadable)
    store.folder("corpus", "f" * 64).mkdir()  # unfinished
    assert [entry.name for entry in store.entries("corpus")] == ["corpus 1", "corpus 2", "corpus 0"]
    assert len(said) == 1  # the unreadable one is passed over aloud
    assert list(store.entries("stage")) == []


def test_two_processes_make_an_entry_once(store: Store, tmp_path: Path):
    log, until = tmp_path / "log", tmp_path / "until"
    first = writer(store, log, until)
    while not log.exists():
        time.sleep(0.02)
    second = writer(store, log, until)
    assert second.stdout is not None
    waiting = second.stdout.readline()
    until.touch()
    (one, _), (answer, _) = first.communicate(timeout=30), second.communicate(timeout=30)
    assert log.read_text() == "made\n"
    assert one.split()[1] == "True"
    assert waiting.startswith(f"waiting for process {first.pid} on ")
    assert answer.split() == [one.split()[0], "False"]


def test_a_killed_writer_holds_nobody_up(store: Store, tmp_path: Path):
    log = tmp_path / "log"
    first = writer(store, log, tmp_path / "never")
    while not (store.folder("corpus", KEY) / "half").exists():
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    began = time.monotonic()
    artifact = made(store)
    assert time.monotonic() - began < 2
    assert "half" not in artifact.outputs


def test_a_writer_that_lost_its_lock_does_not_commit(store: Store):
    def work(folder: Path) -> Findings:
        (store.root / "corpus" / f"{KEY}.lock").unlink()
        return write_words(folder)

    with pytest.raises(EnvironmentFault, match="lock of corpus"):
        store.make("corpus", "corpus notes", PREIMAGE, work)
    assert store.find("corpus", KEY) == Missing("corpus", KEY, "unfinished")


def test_a_lock_that_was_removed_while_a_writer_waited_is_taken_anew(store: Store, said: list[str]):
    lock = store.root / "corpus" / f"{KEY}.lock"
    lock.parent.mkdir(parents=True)
    with ThreadPoolExecutor(1) as threads, lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threads.submit(made, store)
        while not (said or waiting.done()):
            time.sleep(0.02)
        lock.unlink()  # as `gc` does, with the entry
        fcntl.flock(held, fcntl.LOCK_UN)
        assert waiting.result(timeout=30).key == KEY
    assert lock.exists()


def test_a_lock_names_its_last_holder_alone(store: Store):
    made(store)
    made(store)
    lock = store.root / "corpus" / f"{KEY}.lock"
    assert lock.read_text() == f"process {os.getpid()} on {socket.gethostname()}"


def test_a_store_that_cannot_be_written_says_what_to_set(tmp_path: Path):
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(EnvironmentFault, match="FOURSTAGE_HOME"):
        made(Store(tmp_path))
