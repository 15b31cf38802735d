"""Quality after minutes of training, against transformers' own examples on the same text.

``python -m benchmarks.time_to_quality --peers .venv-bench/bin/python --out FOLDER``. An encoder of
4 layers of 256 everywhere, ours RoFormer and theirs BERT, and one tokenizer, which we learn from
the text. Each arm pre-trains anew for 5, 10, 20 and 40 minutes, with a schedule of that length,
then learns the labels; one after the other, in turns, on all cores.

- ``fourstage``: the recipe of `fourstage new` for the text and the rows, by ``fourstage run``. Its
  minutes are the wall time of its stages before the labels, compiling and checkpoints included. It
  may stop earlier: `new` reads no text more than 20 times.
- ``documented``: run_mlm.py and run_glue.py as transformers documents them (``ARMS``).
- ``tuned``: the same with ``--peer-rate`` and warm-up, and blocks of 128 tokens, as many as the
  judge's windows have; then with our rate and warm-up for the labels.

One judge for all, the peers' Python on Hugging Face folders: nats a character of documents that
none has read, in windows of 128 tokens, with the same 15 % masked by [MASK]. Ours are converted,
and judged by us as well; it stops if the two differ by more than 1e-4. Dev scores are those of the
best epoch, for all; minutes don't include fine-tuning. FOLDER keeps what is finished in
``runs.jsonl``; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import yaml

PEER = Path(__file__).with_name("peers") / "transformers_time_to_quality.py"
HELD_OUT = 10  # every so many-th document is the judge's
LENGTH, RATE, DRAWS, SEED = 128, 0.15, 4, 1  # tokens, share masked, draws and seed of the masks
TOLERANCE = 1e-4  # nats, between two computations of a loss
LONG = 1000  # minutes for which `new` chooses the larger network
CALIBRATION = 0.5  # minutes of a run that makes the tokenizer and measures our speed
LEAST = 0.1  # share of the minutes for steps, however long compiling takes
GOAL = 3  # times as fast
# The defaults of transformers' TrainingArguments and the values that its documentation gives.
DOCUMENTED = {"rate": 5e-5, "warmup": 0.0, "length": 512, "batch": 8}
DOCUMENTED |= {"finetune_rate": 2e-5, "finetune_warmup": 0.0}
SIZE = {  # our arguments of a network by transformers' names
    "num_hidden_layers": "num_layers",
    "hidden_size": "hidden_dim",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
}


class Bench:
    """The folder of a comparison: data, a project, networks, and what has been found."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.folder = options, options.out.resolve()
        self.project, self.log = self.folder / "project", self.folder / "runs.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.runs: list[dict[str, Any]] = read(self.log) if self.log.exists() else []
        sources, chosen = [options.text, options.rows], self.folder / "sources.json"
        if not chosen.exists():
            self._write_data()
            chosen.write_text(json.dumps(sources), "utf-8")
        if json.loads(chosen.read_text("utf-8")) != sources:
            raise SystemExit(f"{self.folder}: made with other sources than {sources}; use another")

    def once(self, arm: str, minutes: float, seed: int, work: Callable[..., dict]) -> dict:
        """What a training found, earlier or now."""
        run = {"arm": arm, "minutes": minutes, "seed": seed}
        for found in self.runs:
            if run.items() <= found.items():
                return found
        print(f"{arm}, {minutes:g} minutes, seed {seed} …", file=sys.stderr, flush=True)
        run |= work(minutes, seed)
        self.runs.append(run)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
        return run

    def _write_data(self) -> None:
        """Documents and rows as they are published, for both sides."""
        from corpora.reading import read_documents, read_rows
        from corpora.snapshot import take_snapshot
        from data_contracts.records import Document, Row
        from data_contracts.sources import load_source

        text, labelled = load_source(self.options.text), load_source(self.options.rows)
        files: dict[str, list[dict[str, str]]] = {}
        for split, row in read_rows(labelled, take_snapshot(labelled)):
            if isinstance(row, Row):
                files.setdefault(f"{split}", []).append({"text": row.text, "label": row.label})
        if labelled.answers != "label" or labelled.fields.text_pair or "dev" not in files:
            raise SystemExit(f"{self.options.rows}: expected labelled single texts with dev rows")
        found = read_documents(text, take_snapshot(text))
        documents = [{"text": each.text} for each in found if isinstance(each, Document)]
        files["held_out"] = documents[::HELD_OUT]
        files["text"] = [each for n, each in enumerate(documents) if n % HELD_OUT]
        for name, records in files.items():
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (self.folder / f"{name}.jsonl").write_text(lines, "utf-8")

    def recipe(self, minutes: float, seed: int) -> dict[str, Any]:
        """The recipe of `fourstage new`, with the tokens that fit into the minutes."""
        from corpora.survey import survey
        from fourstage.command import first_recipe
        from fourstage.command.project import make_project
        from fourstage.command.proposal import propose

        splits = [self.folder / f"{split}.jsonl" for split in ("train", "dev", "test")]
        text, rows = [str(self.folder / "text.jsonl")], [str(p) for p in splits if p.exists()]
        if not self.project.exists():
            make_project(self.project, propose(text, rows).files)
        corpus = survey("my_text", text, labelled=False)
        labelled = survey("my_rows", rows, labelled=True)
        planned = first_recipe.budgets(corpus, labelled, None, LONG, self.folder)
        overhead, speed = self._pace(planned.shape)
        total = max(60 * minutes - overhead, LEAST * 60 * minutes) * speed
        passes = first_recipe.MOST_PASSES
        train = labelled.tokens * labelled.splits["train"] / labelled.records
        task = min(first_recipe.TASK_SHARE * total, passes * train)
        tokens = {"general": round(min(total - task, passes * corpus.tokens)), "task": round(task)}
        planned = replace(planned, tokens=tokens, minutes=minutes)
        made = yaml.safe_load(first_recipe.first_recipe(planned, str(corpus.source["language"])))
        for unused in ("promote", "evaluate", "limits"):
            del made[unused]
        return made | {"seed": seed}

    def _pace(self, shape: Any) -> tuple[float, float]:
        """Seconds that our latest run took besides its steps, and its tokens a second in them."""
        from tasks.planning.forecast import tokens_per_second

        for run in reversed(self.runs):
            if run.get("speed"):
                return run["seconds"] - run["tokens"] / run["speed"], run["speed"]
        return 0.0, tokens_per_second(shape.family, shape.network, shape.vocabulary, [])[0]

    def ours(self, minutes: float, seed: int) -> dict[str, Any]:
        """Run a recipe in a new home; judge the network that has read the text, not yet the rows.

        A home that an interrupted run left is removed: its times would not be one run's.
        """
        from fourstage.command.verbs.convert import convert

        name = f"fourstage-{minutes:g}-{seed}"
        home, network = self.folder / f"home-{name}", self.folder / name
        for left in (home, network):
            shutil.rmtree(left, ignore_errors=True)
        recipe, path = self.recipe(minutes, seed), self.project / "recipes" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(recipe, sort_keys=False), "utf-8")
        own = {"FOURSTAGE_HOME": str(home), "PREFECT_HOME": str(home / "prefect")}
        environment = {**os.environ, **own, "PYTHONPATH": str(PEER.parents[2])}
        command = (sys.executable, "-m", "fourstage.command", "run", str(path), "--json")
        told = answer(command, cwd=self.project, env=environment)
        stages = {of["stage"]: of for of in told["stages"] if of["status"] != "skipped"}
        places = {kind: home / "store" / "stage" / stages[kind]["key"] for kind in stages}
        manifests = {kind: manifest(place) for kind, place in places.items()}
        before = [stages[kind] for kind in ("general", "task")]
        key = manifests["general"]["inputs"]["start of embeddings"]["key"]
        vectors = manifest(home / "store" / "vectors" / key)["notes"]["seconds"]
        tokens = sum(stage["tokens"] for stage in before)
        timed = sum(stage["tokens"] / (stage["tokens_per_second"] or math.inf) for stage in before)
        selected = manifests["finetune"]["notes"]["metrics"]["selection"]
        ours = self._our_judgement(places["general"])
        convert(str(places["general"]), network)
        found = self.peer({"network": str(network)})
        if abs(ours - found["framed"]) > TOLERANCE:
            raise SystemExit(f"{network}: {ours} nats by us, {found['framed']} by transformers")
        found |= {
            "apart": abs(ours - found["framed"]),
            "dev": selected["value"],
            "metric": selected["metric"],
            "tokens": tokens,
            "seconds": vectors
            + sum(wall_seconds(home, manifests[kind]) for kind in ("general", "task")),
            "speed": tokens / timed if timed else 0.0,
            "size": {theirs: recipe["size"][ours] for theirs, ours in SIZE.items()},
            "finetune": recipe["stages"][-1]["optimizer"]["adamw"],
        }
        shutil.rmtree(home)
        return found

    def _our_judgement(self, stage: Path) -> float:
        """Our loss of a masked held-out token, in nats."""
        from models import features as keys
        from models.saved_tokenizer import load_tokenizer
        from models.training.trained_stage import load_stage
        from tasks.store.artifacts import tokenizer_in_store

        place = tokenizer_in_store(stage)
        assert place is not None
        tokenizer = load_tokenizer(place)
        if not (self.folder / "judge.npz").exists():
            self._write_masks(tokenizer)
        trained = load_stage(stage, tokenizer, precision="float32")
        scorer = trained.scorer("masked_lm", trained.objective("masked_lm"))
        held, total = np.load(self.folder / "judge.npz"), 0.0
        ids, labels = held["ids"], held["labels"]
        for rows in np.array_split(np.arange(len(ids)), -(-len(ids) // 64)):
            batch = {
                keys.TOKEN_IDS: ids[rows],
                keys.SEGMENT_IDS: np.zeros_like(ids[rows]),
                keys.PADDING_MASK: np.ones_like(ids[rows]),
                keys.MASK_POSITIONS: held["positions"][rows],
                keys.MASK_LABELS: labels[rows],
                keys.MASK_WEIGHTS: np.ones(labels[rows].shape, np.float32),
            }
            scores, _ = scorer(batch, trained.network(batch, training=False), training=False)
            total += float(scores["loss"][0])
        return total / labels.size

    def _write_masks(self, tokenizer: Any) -> None:
        """Windows of the held-out documents, masked in several draws."""
        texts = [each["text"] for each in read(self.folder / "held_out.jsonl")]
        encoded, inside = [np.asarray(ids, np.int32) for ids in tokenizer.encode(texts)], LENGTH - 2
        whole = [ids[: len(ids) // inside * inside].reshape(-1, inside) for ids in encoded]
        rows, rng = np.tile(np.concatenate(whole), (DRAWS, 1)), np.random.default_rng(SEED)
        # An unknown token is masked only where there is nothing else.
        order = np.argsort(rng.random(rows.shape) + (rows == tokenizer.unknown_id), axis=1)
        places = np.sort(order[:, : round(RATE * inside)], axis=1)
        labels = np.take_along_axis(rows, places, axis=1)
        np.put_along_axis(rows, places, tokenizer.mask_id, axis=1)
        ids = np.pad(rows, ((0, 0), (1, 1)))
        ids[:, 0], ids[:, -1] = tokenizer.cls_id, tokenizer.sep_id
        np.savez(
            self.folder / "judge.npz",
            ids=ids,
            positions=(places + 1).astype(np.int32),
            labels=labels,
            tokens_a_character=sum(map(len, encoded)) / sum(map(len, texts)),
        )

    def peer(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What the peers' Python finds with these settings."""
        given = json.dumps({"data": str(self.folder), **settings})
        return answer((self.options.peers, str(PEER), given))

    def theirs(self, arm: str, ours: Mapping[str, Any], minutes: float, seed: int) -> dict:
        """Train a peer for the minutes, or for as long as ours took if that is longer."""
        from models.catalogue import find
        from models.evaluation.resampling import scores

        given = dict(DOCUMENTED)
        if arm != "documented":
            given |= {"rate": self.options.peer_rate, "warmup": 0.06, "length": 128, "batch": 32}
            given["finetune_rate"] = float(ours["finetune"]["peak_learning_rate"])
            given["finetune_warmup"] = ours["finetune"]["warmup"]
        found = self.peer(
            {
                **given,
                "size": ours["size"],
                "tokenizer": str(self.folder / f"fourstage-{CALIBRATION:g}-{SEED}"),
                "network": str(self.folder / f"{arm.replace(' ', '-')}-{minutes:g}-{seed}"),
                "seconds": max(60 * minutes, ours["seconds"]),
                "seed": seed,
            }
        )
        truth = [row["label"] for row in read(self.folder / "dev.jsonl")]
        metric, kind = ours["metric"], find("answers", "label")()
        dev = max(scores(kind, truth, said, [metric])[metric] for said in found.pop("said"))
        return {**found, "dev": dev}


def read(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def manifest(entry: Path) -> dict[str, Any]:
    """What the store says of an entry."""
    return json.loads((entry / "manifest.json").read_text("utf-8"))


def answer(command: tuple[str, ...], **where: Any) -> dict[str, Any]:
    """The JSON object that a command prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **where)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:500]}: ended with {done.returncode}")
    return json.loads(done.stdout)


def wall_seconds(home: Path, made: Mapping[str, Any]) -> float:
    """From the start of a stage's MLflow run to its entry in the store."""
    from mlflow import MlflowClient

    run = MlflowClient(f"sqlite:///{home}/mlflow.db").get_run(made["notes"]["run_id"])
    return datetime.fromisoformat(made["created"]).timestamp() - run.info.start_time / 1000


def curves(runs: list[dict[str, Any]]) -> dict[str, dict[float, dict[str, float]]]:
    """Means over the seeds by arm and minutes."""
    found: dict[str, dict[float, dict[str, float]]] = {}
    for arm, minutes in dict.fromkeys((run["arm"], run["minutes"]) for run in runs):
        alike = [run for run in runs if (run["arm"], run["minutes"]) == (arm, minutes)]
        found.setdefault(arm, {})[minutes] = {
            what: mean(run[what] for run in alike) for what in ("nats", "dev", "tokens", "seconds")
        }
    return found


def minutes_to(curve: Mapping[float, Mapping[str, float]], nats: float) -> float:
    """When a curve is at a loss, between its points on a logarithmic scale.

    The minutes of its first point if it is there already, infinite if it never is.
    """
    points = sorted((of["seconds"] / 60, of["nats"]) for of in curve.values())
    losses = np.minimum.accumulate([loss for _, loss in points])
    if nats < losses[-1]:
        return math.inf
    logarithms = np.log([minutes for minutes, _ in points])
    return float(np.exp(np.interp(nats, losses[::-1], logarithms[::-1])))


def draw(found: Mapping[str, Any], metric: str, path: Path) -> None:
    """Both curves of every arm in one picture."""
    from tasks.reports.plots import figure, png

    drawn, ticks = figure(9, 3.6), sorted(found["fourstage"])
    for n, (what, label) in enumerate(
        {"nats": "held-out nats a character", "dev": f"dev {metric}"}.items(), 1
    ):
        axes = drawn.add_subplot(1, 2, n)
        for arm, curve in found.items():
            values = [of[what] for of in curve.values()]
            minutes = [of["seconds"] / 60 for of in curve.values()]
            axes.plot(minutes, values, marker="o", markersize=4, label=arm)
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlabel("minutes of pre-training")
        axes.set_title(label, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    drawn.axes[0].legend(fontsize=8, frameon=False)
    drawn.subplots_adjust(left=0.07, right=0.98, bottom=0.15, top=0.9, wspace=0.18)
    path.write_bytes(png(drawn))


def main() -> None:
    """Train what has not been trained yet, then print and draw."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("text", nargs="?", default="encyclopedia_en", help="a source of text")
    parser.add_argument("rows", nargs="?", default="chemprot", help="a source of labelled rows")
    parser.add_argument("--peers", required=True, help="a Python that has torch and transformers")
    parser.add_argument("--out", type=Path, required=True, help="keeps what is finished")
    parser.add_argument("--minutes", default="5,10,20,40")
    parser.add_argument("--seeds", default="1")
    arms = ("documented", "tuned")
    parser.add_argument("--arms", nargs="*", choices=arms, default=arms, help="peers; default both")
    parser.add_argument("--peer-rate", type=float, default=1e-3, help="of the tuned peer")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    named = {"documented": "documented", "tuned": f"tuned {options.peer_rate:g}"}
    bench, runs, peers = Bench(options), [], [named[arm] for arm in options.arms]
    bench.once("calibration", CALIBRATION, SEED, bench.ours)
    for seed in map(int, options.seeds.split(",")):
        for minutes in map(float, options.minutes.split(",")):
            runs.append(ours := bench.once("fourstage", minutes, seed, bench.ours))
            for arm in peers:
                runs.append(bench.once(arm, minutes, seed, partial(bench.theirs, arm, ours)))
    found, metric = curves(runs), runs[0]["metric"]
    draw(found, metric, bench.folder / "time_to_quality.png")
    last = max(found["fourstage"])
    reached = {arm: minutes_to(found["fourstage"], found[arm][last]["nats"]) for arm in peers}
    if options.json:
        print(
            json.dumps({"means": found, "minutes_to_their_last": reached, "runs": runs}, indent=1)
        )
        return
    print(f"minutes {'arm':<14} nats/char {metric:>9}       tokens  seconds")
    for minutes in sorted(found["fourstage"]):
        for arm, curve in found.items():
            nats, dev, tokens, seconds = curve[minutes].values()
            shown = f"{nats:>9.4f} {dev:>9.3f} {tokens:>12,.0f} {seconds:>8,.0f}"
            print(f"{minutes:>7g} {arm:<14} {shown}")
    for arm, took in reached.items():
        theirs = found[arm][last]["seconds"] / 60
        met = "met" if took <= theirs / GOAL else "not met"
        print(f"{arm} after {theirs:.1f} minutes: ours after {took:.1f}; {GOAL} × faster: {met}")


if __name__ == "__main__":
    main()
