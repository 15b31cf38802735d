"""S25 to S30: what is damaged in the store is noticed before use, said, and made again."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tasks.store.artifacts import MANIFEST, Artifact, Missing, Store
from tests.faults.always import what_always_holds
from tests.faults.finished_home import ADDRESSES, SECOND, Finished, entry, flip
from tests.flows.person import Answer, Listener, Person

Start = Callable[[Person], Listener]


def made_and_reused(answer: Answer) -> tuple[set[str], set[str]]:
    """Names of the steps by what a run said of them."""
    lines = re.findall(r"^(.{40}) (made|trained|reused)\b", answer.err, re.MULTILINE)
    made = {name.strip() for name, status in lines if status != "reused"}
    return made, {name.strip() for name, status in lines if status == "reused"}


def digests(answer: Answer) -> list[tuple[str, str]]:
    stages = answer.json["stages"]
    return [(s["stage"], s["weights_digest"]) for s in stages if s["status"] != "skipped"]


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def test_every_damage_to_any_file_is_noticed(finished: Finished, tmp_path: Path):
    """S25, S26: one bit, the last byte, the whole file; each file of each entry."""
    home = finished.copy(tmp_path).home
    damaged = 0
    for manifest in sorted((home / "store").glob(f"*/*/{MANIFEST}")):
        kind, key = manifest.parts[-3:-1]
        found = Store(home).find(kind, key)
        assert isinstance(found, Artifact), found
        for name in found.outputs:
            path = found.folder / name
            whole, before = path.read_bytes(), path.stat()
            harms: list[tuple[str, Callable[[Path], None]]] = [("missing", Path.unlink)]
            if whole:
                harms += [("damaged", flip), ("damaged", shorten)]
            for word, harm in harms:
                harm(path)
                if path.exists():  # as a copy that keeps times does it
                    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
                missing = Store(home).find(kind, key)
                assert missing == Missing(kind, key, f"output {word}: {path.relative_to(home)}")
                path.write_bytes(whole)
                damaged += 1
        assert isinstance(Store(home).find(kind, key), Artifact)
    assert damaged > 100


def test_what_is_damaged_is_said_and_made_again_and_nothing_else(
    finished: Finished, tmp_path: Path, listener_of: Start
):
    """S25, S26, S27 in one home: a bit of two files, a file gone, a manifest cut, one empty."""
    person = finished.copy(tmp_path)
    home = person.home
    listener = listener_of(person)
    tokens = entry(home, "tokens", "tokens notes")
    (tokens.folder / "documents.arrow").unlink()
    plan = listener.types("plan", *SECOND[1:])
    (step,) = [each for each in plan.json["steps"] if each["step"] == "tokens notes"]
    assert step["status"] == "to be made"
    assert step["why"] == [f"output missing: store/tokens/{tokens.key}/documents.arrow"]

    stage = entry(home, "stage", "stage general")
    flip(stage.folder / "network.safetensors")
    # The third version has its own of these.
    package = entry(home, "package", "package", after=1)
    weights = max((package.folder / "saved_model").rglob("*"), key=lambda path: path.stat().st_size)
    flip(weights)
    cut = entry(home, "corpus", "corpus notes").folder / MANIFEST
    os.truncate(cut, cut.stat().st_size // 2)
    empty = entry(home, "measurement", "measurement finetune", after=1).folder / MANIFEST
    os.truncate(empty, 0)

    answer = listener.types(*SECOND)
    what_always_holds(
        home,
        answer,
        0,
        f"stage general: output damaged: store/stage/{stage.key}/network.safetensors",
        f"tokens notes: output missing: store/tokens/{tokens.key}/documents.arrow",
        f"package: output damaged: store/package/{package.key}/saved_model/",
        f"corpus notes: unreadable manifest store/corpus/{cut.parent.name}/{MANIFEST}",
        f"measurement finetune: unreadable manifest store/measurement/{empty.parent.name}/",
    )
    made, reused = made_and_reused(answer)
    damaged = {"stage general", "tokens notes", "package", "corpus notes", "measurement finetune"}
    # TensorFlow gives a SavedModel other bytes each time, so what is evaluated is new.
    assert damaged <= made <= {*damaged, "evaluation"}
    assert {"stage finetune", "tokenizer", "tokens rows", "dataset rows"} <= reused
    before = finished.told["second"]
    assert digests(answer) == digests(before)
    assert answer.json["metrics"] == before.json["metrics"]
    assert answer.json["model"] == before.json["model"]

    again = listener.types(*SECOND)
    what_always_holds(home, again, 0)
    assert made_and_reused(again)[0] == set()
    traced = listener.types("trace", "models:/small@champion", "--json")
    assert traced.json["complete"] is True, traced.told()


def test_a_home_may_have_blanks_chinese_and_a_quote_in_its_name(finished: Finished):
    """S28: whatever MLflow says is there can be found there."""
    assert {" ", "'", "我"} <= set(finished.home.name)
    what_always_holds(finished.home, finished.told["first"], 0)
    places: set[str] = set()
    with closing(sqlite3.connect(finished.home / "mlflow.db")) as database:
        for table, column in ADDRESSES.items():
            found = database.execute(f"select {column} from {table}").fetchall()
            places |= {place for (place,) in found if place.startswith("file:")}
    models = {Path(unquote(urlsplit(place).path)) for place in places if "/models/" in place}
    assert len(models) == 7  # general, three of finetune, three packages
    for model in models:
        assert (model / "lineage" / "manifests.json").is_file(), model


@pytest.mark.parametrize("place", ["file/home", "file/a/b", "/proc/home", "home with a file"])
def test_a_home_that_cannot_be_written_is_named_before_any_data_is_read(
    finished: Finished, tmp_path: Path, place: str
):
    """S29."""
    (tmp_path / "file").touch()
    home = tmp_path / place
    if place == "home with a file":
        home.mkdir()
        (home / "store").touch()
    answer = Person(home, finished.project).types("run", "small", "--json")
    what_always_holds(
        home,
        answer,
        1,
        rf"the folder {home}.* can't be written by user {os.getuid()} \(.*FOURSTAGE_HOME",
    )
    assert answer.seconds < 10
    assert not (home / "file-digests.jsonl").exists()


@pytest.mark.slow
def test_a_lost_database_is_filled_again_and_either_half_alone_can_be_traced(
    finished: Finished, tmp_path: Path, listener_of: Start
):
    """S30: traced before and after a run fills it; then the store is lost in its turn."""
    person = finished.copy(tmp_path)
    home = person.home
    (home / "mlflow.db").unlink()
    shutil.rmtree(home / "mlflow")
    listener = listener_of(person)

    def hops() -> list[tuple[str, str]]:
        traced = listener.types("trace", "models:/small@champion", "--json")
        what_always_holds(home, traced, 0)
        assert traced.json["complete"] is True
        return [(hop["name"], hop["digest"]) for hop in traced.json["hops"]]

    whole = hops()
    names = {name for name, _ in whole}
    assert {"stage general", "stage finetune", "tokenizer", "corpus notes", "package"} <= names
    answer = listener.types(*SECOND)
    what_always_holds(home, answer, 0)
    assert made_and_reused(answer)[0] == set()
    assert digests(answer) == digests(finished.told["second"])
    assert answer.json["model"] == {"name": "small", "version": 1, "aliases": ["champion"]}

    assert hops() == whole
    (home / "store").rename(home / "elsewhere")
    assert hops() == whole
    (home / "elsewhere").rename(home / "store")
    shutil.rmtree(home / "mlflow" / "models")
    assert hops() == whole
