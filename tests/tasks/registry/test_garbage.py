"""What may go: nothing that a version, a last run or a recent day can reach."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from fourstage.errors import EnvironmentFault
from tasks.registry import garbage
from tasks.registry.garbage import DAY, Waste, find_waste, remove
from tasks.registry.register_model import register
from tasks.store.ancestry import gather
from tasks.store.artifacts import MANIFEST, Artifact, Store
from tasks.store.history import remember, remembered
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import finish_run, start_lifecycle
from tests.tasks.lifecycle import Lifecycle

LONG_AGO = time.time() - 90 * DAY


def age(folder: Path) -> None:
    """As if nothing below a folder had been touched for three months."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (LONG_AGO, LONG_AGO))


def names(waste: list[Waste]) -> set[str]:
    return {item.name for item in waste}


@pytest.fixture
def old(home: Path, saved_model: Path) -> Lifecycle:
    lifecycle = Lifecycle(home, package=saved_model)
    age(lifecycle.store.root)
    return lifecycle


def test_what_nobody_reaches_goes_and_nothing_before_it_is_asked(old, tracking: Tracking):
    waste = find_waste(old.store, tracking, 30)
    assert names(waste) == set(old.made)
    assert all(item.path.exists() and item.size > 0 for item in waste)
    assert remove(old.store, waste) == waste
    assert not any(item.path.exists() for item in waste)
    assert find_waste(old.store, tracking, 30) == []


def test_a_server_that_has_gone_is_named_and_nothing_goes(
    old, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    gone = Tracking(MlflowClient("http://127.0.0.1:9"), "http://127.0.0.1:9", home, "home")
    with pytest.raises(EnvironmentFault, match=r"http://127\.0\.0\.1:9"):
        find_waste(old.store, gone, 30)


def test_a_recent_use_keeps_an_entry_with_all_it_was_made_from(old, tracking: Tracking):
    old.store.mark_used(old["stage domain"])
    left = set(old.made) - names(find_waste(old.store, tracking, 30))
    kept = {
        manifest.name for manifest in gather(old.store.root, old["stage domain"]).manifests.values()
    }
    assert left == kept
    assert {"stage general", "tokenizer", "corpus encyclopedia"} <= left
    assert "stage task" not in left


def test_registered_versions_and_last_runs_are_kept_whole(old, home, tracking, saved_model):
    run = start_lifecycle(tracking, "small", resolved="", tags={})
    package, evaluation = (gather(old.store.root, old[n]) for n in ("package", "evaluation"))
    register(tracking, package, name="small", run_id=run, evaluation=evaluation)
    assert names(find_waste(old.store, tracking, 30)) == set()

    other = Lifecycle(home, 2, saved_model)
    age(other.store.root)
    gone = find_waste(other.store, tracking, 30)
    assert names(gone) == {"stage finetune", "package", "evaluation"}
    assert all(other[item.name].folder == item.path for item in gone)
    remember("other", other.made)
    assert find_waste(other.store, tracking, 30) == []


def test_unfinished_work_is_kept_while_it_is_fresh(home, old, tracking: Tracking):
    checkpoint = home / "store" / "stage" / ("a" * 64) / "checkpoints" / "step-00000010"
    checkpoint.mkdir(parents=True)
    assert "a" * 64 not in {item.path.name for item in find_waste(old.store, tracking, 30)}
    age(checkpoint.parents[1])
    (found,) = [i for i in find_waste(old.store, tracking, 30) if i.path.name == "a" * 64]
    assert "unfinished" in found.why


def test_a_file_that_goes_while_a_stage_is_trained_does_not_end_the_sweep(
    home: Path, tracking: Tracking
):
    made = Lifecycle(home)
    folder = made.store.folder("stage", "ab" * 32) / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "5.part").symlink_to("replaced")  # listed, and gone when it is looked at
    assert find_waste(made.store, tracking, 30) == []


def test_checkpoints_of_finished_stages_go_at_once(old, tracking: Tracking):
    old.store.mark_used(old["stage finetune"])
    left = old["stage general"].folder / "checkpoints"
    left.mkdir()
    (left / "state.safetensors").write_bytes(bytes(10))
    (found,) = [i for i in find_waste(old.store, tracking, 30) if i.path == left]
    remove(old.store, [found])
    assert not left.exists()
    assert isinstance(old.store.find("stage", old["stage general"].key), Artifact)


def test_an_entry_that_somebody_is_making_stays(old, tracking: Tracking):
    entry = old["stage task"]
    (item,) = [i for i in find_waste(old.store, tracking, 30) if i.path == entry.folder]
    with open(entry.folder.with_name(f"{entry.key}.lock"), "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert remove(old.store, [item]) == []
    assert (entry.folder / MANIFEST).exists()
    assert remove(old.store, [item]) == [item]


def test_an_entry_that_was_used_since_it_was_judged_stays(old, tracking: Tracking):
    entry = old["stage task"]
    (item,) = [i for i in find_waste(old.store, tracking, 30) if i.path == entry.folder]
    old.store.mark_used(entry)
    assert remove(old.store, [item]) == []
    assert isinstance(old.store.find("stage", entry.key), Artifact)


def test_the_lock_stays_until_nothing_of_the_entry_is_left(old, tracking: Tracking, monkeypatch):
    entry = old["stage task"]
    (item,) = [i for i in find_waste(old.store, tracking, 30) if i.path == entry.folder]
    lock = entry.folder.with_name(f"{entry.key}.lock")
    emptied = garbage.shutil.rmtree

    def rmtree(folder: Path) -> None:
        assert lock.exists()
        assert not (folder / MANIFEST).exists()
        emptied(folder)

    monkeypatch.setattr(garbage.shutil, "rmtree", rmtree)
    assert remove(old.store, [item]) == [item]
    assert not lock.exists()


def test_what_a_run_made_stays_until_it_is_over(home: Path, tracking: Tracking):
    old = Lifecycle(home)
    age(old.store.root)
    run = start_lifecycle(tracking, "small")
    old.store.mark_used(old["stage general"])  # its first stage; the second is being trained
    kept = {"stage general", "tokenizer", "corpus encyclopedia"}
    left = set(old.made) - names(find_waste(old.store, tracking, 0))
    assert kept <= left
    assert "stage domain" not in left
    finish_run(tracking, run, "FINISHED")
    assert names(find_waste(old.store, tracking, 0)) == set(old.made)


def test_what_the_holder_of_a_lock_made_stays_until_it_lets_go(home: Path, tracking: Tracking):
    old = Lifecycle(home)
    age(old.store.root)
    old.store.mark_used(old["stage general"])
    lock = old.store.folder("stage", "a" * 64).with_suffix(".lock")
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"process {os.getpid()} on {socket.gethostname()}")
        held.flush()
        assert "stage general" not in names(find_waste(old.store, tracking, 0))
    assert "stage general" in names(find_waste(old.store, tracking, 0))


def test_old_logs_of_runs_go_and_those_of_servers_stay(home, old, tracking: Tracking):
    logs = home / "logs"
    logs.mkdir()
    for name in ("20260101-000000-run-7.log", "worker.log"):
        (logs / name).write_text("said\n")
    age(logs)
    assert [i.name for i in find_waste(old.store, tracking, 30) if i.kind == "logs"] == [
        "20260101-000000-run-7.log"
    ]


def test_old_copies_of_versions_go_and_new_ones_stay(home, old, tracking: Tracking):
    copies = [home / "versions" / (digit * 64) for digit in "ab"]
    for copy in copies:
        copy.mkdir(parents=True)
        (copy / "config.json").write_text("{}\n")
    age(copies[0])
    waste = [item for item in find_waste(old.store, tracking, 30) if item.kind == "versions"]
    assert remove(old.store, waste) == waste
    assert [copy.exists() for copy in copies] == [False, True]
    assert list((home / "versions").iterdir()) == [copies[1]]


def test_a_copy_that_is_being_written_or_was_used_since_stays(home: Path, tracking: Tracking):
    store = Store(home)
    copy = home / "versions" / ("a" * 64)
    copy.mkdir(parents=True)
    (copy / "config.json").write_text("{}\n")
    age(copy)
    waste = [item for item in find_waste(store, tracking, 30) if item.kind == "versions"]
    with tracking.alone(f"copy-{'a' * 16}"):
        assert remove(store, waste) == []
    os.utime(copy)
    assert remove(store, waste) == []
    assert copy.exists()
    age(copy)
    assert remove(store, waste) == waste


def test_what_cannot_be_read_of_a_last_run_stops_the_sweep_by_name(home: Path):
    (home / "recipes").mkdir()
    (home / "recipes" / "small.json").write_text('{"half', encoding="utf-8")
    with pytest.raises(EnvironmentFault, match=r"small.json: can't read the artifacts of the last"):
        list(remembered())
