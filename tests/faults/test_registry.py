"""S40 to S43: whoever promotes at whatever moment, the champion is one that was compared with."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from models.training.precision import resolve_precision
from tests.faults.always import what_always_holds
from tests.faults.finished_home import THIRD, Finished
from tests.flows.person import Answer, Listener, Person

NAME = "small"


@dataclass
class Office:
    """A home with three versions and two people who answer at once, once they are asked."""

    person: Person

    @cached_property
    def first(self) -> Listener:
        return Listener(self.person)

    @cached_property
    def second(self) -> Listener:
        return Listener(self.person)

    def close(self) -> None:
        for listener in vars(self).values():
            if isinstance(listener, Listener):
                listener.close()

    @property
    def home(self) -> Path:
        return self.person.home

    def alias(self, alias: str) -> int | None:
        with closing(sqlite3.connect(self.home / "mlflow.db")) as database:
            found = database.execute(
                "select version from registered_model_aliases where name = ? and alias = ?",
                (NAME, alias),
            ).fetchone()
        return int(found[0]) if found else None

    def model_files(self, number: int) -> Path:
        """Folder of a version's logged model."""
        with closing(sqlite3.connect(self.home / "mlflow.db")) as database:
            (model,) = database.execute(
                "select value from model_version_tags"
                " where name = ? and version = ? and key = 'fourstage.model_id'",
                (NAME, number),
            ).fetchone()
        return self.home / "mlflow" / "models" / model

    @contextmanager
    def waiting(
        self, *commands: tuple[Listener, tuple[str, ...]]
    ) -> Iterator[list[Future[Answer]]]:
        """Let people come as far as the aliases' lock, held here until the block is left.

        They have compared their versions with the champion by then and have not moved it.
        """
        path = self.home / "locks" / f"promote-{NAME}.lock"
        with ThreadPoolExecutor(len(commands)) as pool:
            with open(path, "a+") as lock:
                flock(lock, LOCK_EX)
                futures = [pool.submit(listener.types, *words) for listener, words in commands]
                deadline = time.monotonic() + 200
                for listener, _ in commands:
                    while not waits(listener.process.pid, path.stat().st_ino):
                        assert time.monotonic() < deadline
                        assert not any(future.done() for future in futures), futures
                        time.sleep(0.1)
                yield futures


def waits(process: int, inode: int) -> bool:
    """Whether a process waits for the lock of a file, as the kernel lists it."""
    lines = Path("/proc/locks").read_text().splitlines()
    waiting = [line.split() for line in lines if "->" in line]
    return any(
        str(process) in words and any(word.endswith(f":{inode}") for word in words)
        for words in waiting
    )


@pytest.fixture(scope="module")
def office(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Version 2 is the champion, version 3 was refused."""
    office = Office(finished.copy(tmp_path_factory.mktemp("office")))
    yield office
    office.close()


@dataclass
class Forced:
    """What was told while the files of version 2, the champion, were gone."""

    third: Answer
    champion: int | None
    forced: Answer


@pytest.fixture(scope="module")
def forced(office: Office) -> Forced:
    files = office.model_files(2)
    files.rename(office.home / "gone")
    third, champion = office.first.types(*THIRD), office.alias("champion")
    forced = office.second.types("promote", NAME, "--version", "3", "--force")
    (office.home / "gone").rename(files)
    return Forced(third, champion, forced)


@pytest.mark.slow
def test_a_champion_whose_files_are_gone_stops_promotion(office: Office, forced: Forced):
    """S42; without a run it is tested in tests/tasks/registry/test_registry.py."""
    what_always_holds(
        office.home,
        forced.third,
        4,
        "champion version 2 cannot be read",
        f"fourstage promote {NAME} --version 3 --force",
    )
    assert forced.third.json["model"]["aliases"] == ["challenger"]
    assert forced.champion == 2
    what_always_holds(office.home, forced.forced, 0)
    assert f"{NAME} version 3 is the champion: forced" in forced.forced.out


@pytest.mark.slow
@pytest.mark.usefixtures("forced")
def test_of_two_promotions_at_once_one_is_out_of_date(office: Office):
    """S40: both were compared with version 3.

    Of two threads the same is tested in tests/tasks/registry/test_registry.py.
    """
    champion = office.alias("champion")
    commands = [
        (office.first, ("promote", NAME, "--version", "1", "--json")),
        (office.second, ("promote", NAME, "--version", "2", "--json")),
    ]
    with office.waiting(*commands) as futures:
        assert office.alias("champion") == champion == 3
    answers = {number: future.result() for number, future in enumerate(futures, start=1)}
    (winner,) = [number for number, answer in answers.items() if answer.code == 0]
    loser = 3 - winner
    assert office.alias("champion") == winner
    assert office.alias("previous") == 3
    what_always_holds(office.home, answers[winner], 0)
    what_always_holds(
        office.home,
        answers[loser],
        4,
        f"{NAME}: version {loser} was compared with version 3, but the champion is version"
        f" {winner} by now, so the comparison is out of date",
        f"fourstage promote {NAME} --version {loser}",
    )
    told = {number: json.loads(answer.out) for number, answer in answers.items()}
    assert told[winner]["model"]["aliases"] == ["champion"]
    assert told[loser]["decision"] == "refuse"
    assert "champion" not in told[loser]["model"]["aliases"]
    traced = office.first.types("trace", f"models:/{NAME}@champion", "--json")
    assert traced.json["model"]["version"] == winner


def test_a_champion_that_somebody_moves_in_between_is_compared_with_anew(office: Office):
    """S41."""
    from mlflow import MlflowClient

    champion = office.alias("champion")
    version, other = sorted({1, 2, 3} - {champion})
    command = ("promote", NAME, "--version", str(version), "--json")
    with office.waiting((office.first, command)) as (future,):
        client = MlflowClient(tracking_uri=f"sqlite:///{office.home / 'mlflow.db'}")
        client.set_registered_model_alias(NAME, "champion", str(other))
    refused = future.result()
    what_always_holds(
        office.home,
        refused,
        4,
        f"version {version} was compared with version {champion}, but the champion is version"
        f" {other} by now",
    )
    assert office.alias("champion") == other
    anew = office.first.types(*command)
    what_always_holds(office.home, anew, 0)
    decision: dict[str, Any] = anew.json
    assert decision["champion_version"] == other
    assert decision["model"] == {"name": NAME, "version": version, "aliases": ["champion"]}
    assert office.alias("previous") == other


def test_files_that_were_altered_are_refused_and_never_run(office: Office):
    """A line of code behind a version that is no champion, and its list of files left as it was."""
    champion = office.alias("champion")
    assert champion is not None
    version = min({1, 2, 3} - {champion})
    code = office.model_files(version) / "artifacts" / "text_model.py"
    whole = code.read_text("utf-8")
    ran = office.home.parent / "ran"
    code.write_text(f"{whole}\nopen({str(ran)!r}, 'w')\n", "utf-8")
    address = f"{NAME}/{version}"
    try:
        asked = office.first.types("predict", address, "a text")
        traced = office.first.types("trace", f"models:/{address}")
        offered = office.first.types("promote", NAME, "--version", str(version), "--json")
        forced = office.first.types("promote", NAME, "--version", str(version), "--force")
    finally:
        code.write_text(whole, "utf-8")
    says = r"text_model\.py of m-\w+ is not the file that was logged"
    what_always_holds(office.home, asked, 3, f"{NAME} version {version}: {says}")
    what_always_holds(office.home, traced, 1, says)
    # The page of its lineage cannot be drawn, which makes no other exit code of a refusal.
    what_always_holds(office.home, offered, 4, f"lineage: .*{says}")
    assert offered.json["decision"] == "refuse"
    what_always_holds(office.home, forced, 4, f"smoke test: {says}")
    assert office.alias("champion") == champion
    assert not ran.exists()


@pytest.mark.slow
def test_a_machine_that_computes_other_weights_registers_its_own(
    finished: Finished, office: Office, tmp_path: Path
):
    """Two machines, two homes, one MLflow: same keys, as keys leave the processor out.

    With made-up weights the same is tested in tests/tasks/registry/test_registry.py.
    """
    database = f"sqlite:///{office.home / 'mlflow.db'}"
    # What oneDNN computes with older instructions differs in the last bits. They must know the
    # precision: where AMX makes it bfloat16, oneDNN aborts with those that don't.
    isa = "AVX512_CORE_BF16" if resolve_precision() == "bfloat16" else "SSE41"
    older = {"MLFLOW_TRACKING_URI": database, "ONEDNN_MAX_CPU_ISA": isa}
    colleague = Listener(Person(tmp_path / "another home", office.person.folder, older))
    try:
        made = colleague.types("run", NAME, "--json")
        again = colleague.types("run", NAME, "--json")
        traced = [colleague.types("trace", f"models:/{NAME}/{n}", "--json") for n in (1, 4)]
    finally:
        colleague.close()
    theirs, ours = made.json["stages"][0], finished.told["third"].json["stages"][0]
    assert theirs["key"] == ours["key"]
    if theirs["weights_digest"] == ours["weights_digest"]:
        pytest.skip("this processor computes the same bits with the older instructions")
    for answer in (made, again):
        what_always_holds(tmp_path / "another home", answer, 0)
        assert answer.json["model"] == {"name": NAME, "version": 4, "aliases": ["champion"]}
    assert [stage["status"] for stage in again.json["stages"][:1]] == ["reused"]
    for answer, stage in zip(traced, (ours, theirs), strict=True):
        (general,) = [hop for hop in answer.json["hops"] if hop.get("stage") == "general"]
        assert general["weights_digest"] == stage["weights_digest"]


def test_there_is_nothing_to_go_back_to_from_a_first_champion(finished: Finished):
    """S43."""
    back, unknown = finished.told["rolled back"], finished.told["no such model"]
    what_always_holds(finished.home, back, 4, f"{NAME}: version 1 is the first champion")
    what_always_holds(finished.home, unknown, 2, f"'smal' .*did you mean '{NAME}'")
    # The run that came next took over from version 1: it had stayed the champion.
    assert finished.told["second"].json["gate"]["champion_version"] == 1


def test_a_refusal_needs_no_prefect_where_no_server_is_asked_for(
    finished: Finished, tmp_path: Path, listener_of: Callable[..., Listener]
):
    person = finished.copy(tmp_path)
    shutil.rmtree(person.home / "prefect")
    office = Office(person)
    with open(office.model_files(1) / "artifacts" / "text_model.py", "a") as code:
        code.write("# altered\n")
    altered = r"text_model\.py of m-\w+ is not the file that was logged"
    says = {
        ("promote", NAME): "version 3 is not promoted: accuracy",
        ("promote", NAME, "--version", "1"): f"version 1 is not promoted: lineage: .*{altered}",
        ("rollback", NAME): f"version 1 cannot be read: {altered}",
    }
    listener = listener_of(person, untraced=False)
    for words, said in says.items():
        what_always_holds(person.home, listener.types(*words), 4, said)
    with closing(sqlite3.connect(person.home / "mlflow.db")) as database, database:
        database.execute("delete from registered_model_aliases where alias = 'challenger'")
    what_always_holds(
        person.home,
        listener.types("promote", NAME),
        4,
        f"{NAME} has no challenger: version 2 is the champion",
    )
    assert not (person.home / "prefect" / "prefect.db").exists()
    assert (office.alias("champion"), office.alias("previous")) == (2, 1)
