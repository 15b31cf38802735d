"""Self-training: what does a model learn from its own answers to rows without labels?

``python -m benchmarks.self_training RECIPE DATASET --labels 64 256 --seeds 1 2 3 --out FOLDER``.
The teacher is RECIPE, fine-tuned on some of DATASET's training rows; each seed draws others. It
labels all other training rows by ``fourstage predict``. Students are the same recipe on the same
pre-training: one learns the teacher's rows and all its answers (``all``), one its rows and the
surest half of the answers of each label (``surest``). Scores are of the dev rows, or with
``--split test`` of the test rows. FOLDER keeps what is finished in ``runs.jsonl``; the same command
goes on where it was stopped.

Reference:
    Scudder 1965, "Probability of error of some adaptive pattern-recognition machines"; Du et al.
    2021, arXiv 2010.02194.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import yaml

from benchmarks.time_to_quality import read
from corpora.reading import read_rows
from corpora.snapshot import take_snapshot
from corpora.training_rows import training_order
from data_contracts.records import Row
from data_contracts.sources import load_source

COMMAND = (sys.executable, "-m", "fourstage.command")


class Bench:
    """A project with a source for each drawn and each enlarged set of rows; what was found."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.folder = options, options.out.resolve()
        self.log = self.folder / "runs.jsonl"
        (self.folder / "sources").mkdir(parents=True, exist_ok=True)
        (self.folder / "fourstage.project").write_text("A project.\n", "utf-8")
        self.runs: list[dict[str, Any]] = read(self.log) if self.log.exists() else []
        asked, chosen = (
            vars(options) | {"out": "", "labels": [], "seeds": []},
            self.folder / "asked.json",
        )
        if not chosen.exists():
            chosen.write_text(json.dumps(asked), "utf-8")
        if json.loads(chosen.read_text("utf-8")) != asked:
            raise SystemExit(f"{self.folder}: made with other options; use another folder")
        self.source = load_source(options.dataset)
        self.rows: dict[str, list[dict[str, str]]] = defaultdict(list)
        for split, row in read_rows(self.source, take_snapshot(self.source)):
            if isinstance(row, Row):
                one = {"id": row.id, "text": row.text, "label": row.label}
                self.rows[f"{split}"].append(one)
        if self.source.answers != "label" or self.source.fields.text_pair or len(self.rows) != 3:
            raise SystemExit(f"{options.dataset}: expected labelled single texts in three splits")

    def once(self, arm: str, labels: int, seed: int) -> dict[str, Any]:
        """What an arm's training found, earlier or now."""
        run: dict[str, Any] = {"arm": arm, "labels": labels, "seed": seed}
        for found in self.runs:
            if run.items() <= found.items():
                return found
        print(f"{arm}, {labels} labels, seed {seed} …", file=sys.stderr, flush=True)
        run |= self.train(f"{self.options.dataset}_{arm}_{labels}_{seed}", run)
        self.runs.append(run)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
        return run

    def train(self, name: str, run: Mapping[str, Any]) -> dict[str, Any]:
        """Train on a set of rows; its score, and of a teacher also the file with its answers."""
        teaches = run["arm"] == "teacher"
        train = self.drawn(run) if teaches else self.enlarged(run)
        self.write(name, train)
        settings = [
            f"seed={run['seed']}",
            f"stages.finetune.dataset={name}",
            f"evaluate.metrics=[{self.options.metric}]",
            f"evaluate.split={self.options.split}",
            f"promote={{model: {name}, require: {{}}}}",
            *self.options.set,
        ]
        if teaches:
            settings.append(f"stages.finetune.budget={self.options.budget}")
        said = [word for setting in settings for word in ("--set", setting)]
        told = json.loads(self.fourstage("run", self.options.recipe, *said, "--json"))
        found = {"score": told["metrics"][self.options.metric]}
        if teaches:
            model, drawn = told["model"], {row["id"] for row in train}
            asked, answers = (self.folder / f"{name}-{what}.jsonl" for what in ("asked", "said"))
            lines(asked, [row for row in self.rows["train"] if row["id"] not in drawn])
            version = f"{model['name']}/{model['version']}"
            given = ("--input", str(asked), "--column", "text", "--output", str(answers))
            self.fourstage("predict", version, *given)
            found["said"] = answers.name
        return found

    def fourstage(self, *arguments: str) -> str:
        """What a command prints."""
        code = str(Path(__file__).parents[1])
        home = {"FOURSTAGE_HOME": str(self.folder / "home"), "PYTHONPATH": code}
        done = subprocess.run(
            (*COMMAND, *arguments),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            cwd=self.folder,
            env=os.environ | home,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: ended with {done.returncode}")
        return done.stdout

    def drawn(self, run: Mapping[str, Any]) -> list[dict[str, str]]:
        """The rows whose labels the teacher sees."""
        train = self.rows["train"]
        ids, labels = [row["id"] for row in train], [(row["label"],) for row in train]
        order, _ = training_order(ids, labels, run["seed"])
        return [train[i] for i in order[: run["labels"]]]

    def enlarged(self, run: Mapping[str, Any]) -> list[dict[str, str]]:
        """The teacher's rows, and others with its answers as labels."""
        said = read(self.folder / self.once("teacher", run["labels"], run["seed"])["said"])
        if run["arm"] == "surest":
            of: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for row in sorted(said, key=lambda row: -row["predicted_score"]):
                of[row["predicted_label"]].append(row)
            said = [row for rows in of.values() for row in rows[: -(-len(rows) // 2)]]
        answered = [
            {"id": row["id"], "text": row["text"], "label": row["predicted_label"]} for row in said
        ]
        return self.drawn(run) + answered

    def write(self, name: str, train: Sequence[Mapping[str, str]]) -> None:
        """A source of these training rows and the data set's own dev and test rows."""
        lines(self.folder / f"{name}.jsonl", train)
        files = {"train": f"{name}.jsonl"}
        for split in ("dev", "test"):
            files[split] = f"{split}.jsonl"
            lines(self.folder / files[split], self.rows[split])
        source = {
            "name": name,
            "language": self.source.language,
            "licence": self.source.licence,
            "files": files,
            "fields": {"id": "id", "text": "text", "label": "label"},
        }
        text = yaml.safe_dump(source, sort_keys=False)
        (self.folder / "sources" / f"{name}.yaml").write_text(text, "utf-8")


def lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def main() -> None:
    """Train teachers and students, and print their scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("dataset")
    parser.add_argument("--labels", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--budget", default="{steps: 250}", help="of a teacher")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    bench = Bench(options)
    for labels in options.labels:
        for arm in ("teacher", "all", "surest"):
            found = [bench.once(arm, labels, seed)["score"] for seed in options.seeds]
            spread = f" ± {stdev(found):.3f}" if len(found) > 1 else ""
            print(f"{labels} labels, {arm}: {mean(found):.3f}{spread}", flush=True)


if __name__ == "__main__":
    main()
