"""A project, a home and one process that answers: where a fault is made, met and put right.

Two recipes stand in the project, one on a corpus, one on a dataset. A fault takes the place of
their file; put right, it is the file that was there before, so that the run which follows has to
find everything made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow

from tests.faults.always import what_always_holds
from tests.flows.own_project import FIELDS, SIZE, Project, document, row, stages
from tests.flows.person import Answer, Listener, Person

LABELLED = {**FIELDS, "label": "label"}


def lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """JSON lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def documents(count: int = 200, first: int = 0) -> list[dict[str, str]]:
    """Texts of made-up words, the canary in each."""
    return [document(seed) for seed in range(first, first + count)]


def rows(count: int = 120, first: int = 0) -> list[dict[str, str]]:
    """Labelled texts, the canary in each."""
    return [row(seed) for seed in range(first, first + count)]


def on_corpora(*names: str, **changes: Any) -> dict[str, Any]:
    """A recipe of one stage of a few steps.

    Args:
        *names: Its corpora.
        **changes: Settings laid over the stage.
    """
    stage = {**stages()[0], "budget": {"steps": 4}, "batch_size": 4}
    return whole([{**stage, "corpora": dict.fromkeys(names, 1.0), **changes}])


def on_dataset(**changes: Any) -> dict[str, Any]:
    """A recipe that only learns the labels of `rows`, from random weights.

    Args:
        **changes: Settings laid over the stage.
    """
    return whole([{**stages()[3], "dataset": "rows", "budget": {"steps": 4}, **changes}])


def whole(stages: list[dict[str, Any]]) -> dict[str, Any]:
    """A recipe without a gate."""
    return {
        "name": "on-trial",
        "family": "bert",
        "size": SIZE,
        "tokenizer": {"vocabulary_size": 400},
        "seed": 17,
        "stages": stages,
    }


@dataclass
class Desk:
    """What a fault needs: files to make it of, a command to meet it, a home to look at.

    Args:
        project: Where sources and recipes are.
        person: Whose home it is.
        listener: The process that answers.
    """

    project: Project
    person: Person
    listener: Listener

    @property
    def home(self) -> Path:
        return self.person.home

    def data(self, name: str) -> Path:
        """A file of the project's data."""
        return self.project.folder / "data" / name

    def runs(self, recipe: Mapping[str, Any] | str | bytes) -> Answer:
        """Run a recipe: its values, or its text as it stands."""
        path = self.project.folder / "recipes" / "on-trial.yaml"
        if isinstance(recipe, Mapping):
            self.project.recipe(recipe)
        else:
            path.write_bytes(recipe if isinstance(recipe, bytes) else recipe.encode())
        return self.listener.types("run", str(path), "--json")

    def on_corpus(self, content: bytes | None, file: str = "mine.jsonl", **source: Any) -> Answer:
        """Run on a corpus of one file; None leaves the file as it is."""
        if content is not None:
            self.data(file).write_bytes(content)
        fields = {"fields": FIELDS} if "jsonl" in file else {}
        self.project.source("mine", **{"files": [f"data/{file}"], **fields, **source})
        return self.runs(on_corpora("mine"))

    def on_rows(
        self,
        train: bytes,
        test: bytes | None = None,
        suffix: str = "jsonl",
        recipe: Mapping[str, Any] | None = None,
        **source: Any,
    ) -> Answer:
        """Run on a dataset of a train file and a test file."""
        test = lines(rows(60, 300)) if test is None else test
        files = {"train": f"data/train.{suffix}", "test": f"data/test.{suffix}"}
        for split, content in (("train", train), ("test", test)):
            self.data(f"{split}.{suffix}").write_bytes(content)
        self.project.source("rows", **{"files": files, "fields": LABELLED, **source})
        return self.runs(recipe or on_dataset())

    def entry(self, answer: Answer, step: str) -> Path:
        """What a run that ended well has of a step, such as ``corpus mine``."""
        assert answer.code == 0, answer.told()
        return self.newest(step)

    def newest(self, step: str) -> Path:
        """The newest finished entry of a step."""
        found = [
            manifest
            for manifest in (self.home / "store" / step.split()[0]).glob("*/manifest.json")
            if json.loads(manifest.read_text("utf-8"))["name"] == step
        ]
        return max(found, key=lambda manifest: manifest.stat().st_mtime_ns).parent

    def counts(self, answer: Answer) -> dict[str, Any]:
        """What became of the corpus: read, kept, quarantined, removed."""
        return json.loads((self.entry(answer, "corpus mine") / "counts.json").read_text("utf-8"))

    def promise(self, answer: Answer, name: str, contract: str = "contract mine") -> dict[str, Any]:
        """How a promise of a contract fared."""
        report = json.loads((self.entry(answer, contract) / "report.json").read_text("utf-8"))
        (found,) = [result for result in report["results"] if result["id"] == name]
        return found

    def holds(self, answer: Answer, code: int, *patterns: str) -> None:
        """Everything of `what_always_holds`, in this home."""
        what_always_holds(self.home, answer, code, *patterns)

    def put_right(self, on: Callable[[], Answer]) -> None:
        """The same command on good data works and makes nothing that was there before."""
        answer = on()
        self.holds(answer, 0)
        statuses = {stage["status"] for stage in answer.json["stages"]} - {"skipped"}
        assert statuses == {"reused"}, answer.told()


def table(path: Path) -> list[dict[str, Any]]:
    """The rows of an Arrow file."""
    with pyarrow.memory_map(str(path)) as mapped:
        return pyarrow.ipc.open_file(mapped).read_all().to_pylist()


@dataclass
class Cost:
    """What a command took of a process.

    Attributes:
        before: Mebibytes in memory when it began.
        peak: Most mebibytes in memory while it ran.
        seconds: Of the processors: what others do on the machine is not in it.
    """

    before: int
    peak: int = 0
    seconds: float = 0.0


@contextmanager
def cost_of(process: int) -> Iterator[Cost]:
    """Measure a process by what the operating system says of it."""
    status = Path(f"/proc/{process}/status")

    def mebibytes(name: str) -> int:
        (line,) = [line for line in status.read_text().splitlines() if line.startswith(name)]
        return int(line.split()[1]) // 1024

    def seconds() -> float:
        times = psutil.Process(process).cpu_times()
        return times.user + times.system

    Path(f"/proc/{process}/clear_refs").write_text("5")  # the peak begins anew
    cost, began = Cost(mebibytes("VmRSS")), seconds()
    yield cost
    cost.peak, cost.seconds = mebibytes("VmHWM"), seconds() - began
