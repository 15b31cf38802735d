"""Rows a second of fine-tuning, against Hugging Face's BERT trained as transformers' examples do.

``python -m benchmarks.finetuning_throughput ROWS --peers .venv-bench/bin/python``. ROWS is a JSON
lines file with ``text`` and ``label``, also compressed. One network everywhere: 4 layers of 256,
vocabulary 8,192, rows cut at 128 tokens, batches of 32, dropout .1, AdamW, clipping, float32; the
same token ids. Ours is the trainer as a recipe runs it, checkpoints included. Peers pad as
``run_glue.py`` does by default (every row to 128), as ``run_glue_no_trainer.py`` does (to the
longest of a batch), and with rows of like length together (``--group_by_length``); eager as the
examples are, and compiled. Every one trains the same epochs anew in each round, in turns; the
medians of the rounds are reported, with and without the time to compile.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.workers import started

PEER = Path(__file__).with_name("peers") / "transformers_finetuning.py"
VOCABULARY, LENGTH, BATCH = 8192, 128, 32


def tokenise(path: Path, folder: Path) -> int:
    """Write the rows' ids for all; returns the number of rows."""
    from models.tokenizers.wordpiece import WordPiece

    lines = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open()
    with lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    texts = [row["text"] for row in rows]
    tokenizer = WordPiece.learned(texts, vocabulary_size=VOCABULARY, lowercase=True)
    tokenizer.save(folder)
    ids = [found[: LENGTH - 2] for found in tokenizer.encode(texts)]
    names = sorted({row["label"] for row in rows})
    np.savez(
        folder / "rows.npz",
        ids=np.concatenate(ids),
        lengths=np.array([len(found) for found in ids]),
        labels=np.array([names.index(row["label"]) for row in rows]),
        special=np.array([tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id]),
        vocabulary=tokenizer.vocabulary_size,
    )
    return len(rows)


class Rows:
    """The rows of a file, as the trainer reads them."""

    def __init__(self, path: Path):
        held = np.load(path)
        self._ids = np.split(held["ids"].astype(np.int32), np.cumsum(held["lengths"])[:-1])
        self.answers = [f"label{label:02d}" for label in held["labels"].tolist()]
        self.ids = [f"r{i}" for i in range(len(self._ids))]
        self.lengths = held["lengths"]

    def __len__(self) -> int:
        return len(self._ids)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        """Token ids of row `i`."""
        return (self._ids[i],)


def work(folder: Path) -> None:
    """Answer each line ``E`` with the seconds of E epochs, and of those without compiling."""
    from fourstage.settings import make_private

    make_private()
    from fourstage.recipe.defaults import STAGES
    from models.families.bert import SIZES
    from models.tokenizers.wordpiece import WordPiece
    from models.training.gradient import train
    from models.training.job import TrainingJob
    from models.training.stage import Budget, Optimizer, Phase, StageSettings

    rows: Any = Rows(folder / "rows.npz")
    tokenizer = WordPiece.load(folder)
    tokens = int((rows.lengths + 2).sum())
    print("ready", flush=True)
    for line in sys.stdin:
        epochs = int(line)
        stage = StageSettings(
            kind="finetune",
            family="bert",
            network={**SIZES["mini"], "dropout": 0.1},
            phases=[Phase(LENGTH)],
            batch_size=BATCH,
            budget=Budget("epochs", epochs),
            optimizer=Optimizer("adamw", dict(STAGES["finetune"].adamw)),
            head="sequence_classification",
            precision="float32",
            seed=1,
        )
        with tempfile.TemporaryDirectory() as temporary:
            began = time.perf_counter()
            outcome = train(TrainingJob(stage, tokenizer, rows={"train": rows}), Path(temporary))
            seconds = time.perf_counter() - began
        print(seconds, epochs * tokens / outcome.tokens_per_second, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--peers", default="", help="a Python that has torch and transformers")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.work:
        work(options.rows)
        return
    with tempfile.TemporaryDirectory() as temporary:
        count = options.epochs * tokenise(options.rows, Path(temporary))
        found = measure(temporary, options.peers, options.epochs, options.rounds)
    speed = {name: [round(count / s) for s in seconds] for name, seconds in found.items()}
    if options.json:
        print(json.dumps({"rows": count, "rows_per_second": speed}, indent=1))
        return
    ours = speed["fourstage"]
    print(f"{count:,} rows; a second, in all and without compiling; ours is so many times as fast")
    for name, (whole, steady) in sorted(speed.items(), key=lambda each: -each[1][0]):
        ratios = f"{ours[0] / whole:5.2f} {ours[1] / steady:5.2f}"
        print(f"  {name:<36} {whole:>6,} {steady:>6,}  {ratios}")


def measure(folder: str, peers: str, epochs: int, rounds: int) -> dict[str, list[float]]:
    """Median seconds of the epochs by name: in all, and without compiling."""
    this = (sys.executable, "-m", "benchmarks.finetuning_throughput")
    commands = {"fourstage": (*this, folder, "--work")}
    if peers:
        commands |= {
            f"transformers {execution} {padding}": (peers, str(PEER), folder, execution, padding)
            for execution in ("eager", "compile")
            for padding in ("to-128", "to-longest", "grouped")
        }
    with started(commands) as workers:
        taken: dict[str, list[list[float]]] = {name: [] for name in workers}
        for _ in range(rounds):
            for name, worker in workers.items():
                taken[name].append(worker.ask(str(epochs)))
    return {
        name: [median(each) for each in zip(*all_, strict=True)] for name, all_ in taken.items()
    }


if __name__ == "__main__":
    main()
