"""Texts a second of a registered classifier, against transformers' ``pipeline()`` on its weights.

``python -m benchmarks.prediction MODEL TEXTS --peers .venv-bench/bin/python``. MODEL is such as
models:/NAME@champion in FOURSTAGE_HOME; TEXTS a JSON lines file with ``text``, also compressed.
Ours is MLflow's pyfunc; the peer reads what ``fourstage convert MODEL`` writes. Both get lists of
raw texts, 1 and 32 at a time, in turns; medians are reported. It stops if scores of the same texts
differ by more than 1e-4: then they do not compute the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.workers import started

PEER = Path(__file__).with_name("peers") / "transformers_prediction.py"
SIZES = {1: 100, 32: 10}  # texts a call: calls a round
COMPARED, TOLERANCE = 64, 1e-4


def read(path: Path) -> list[str]:
    """The texts of a file."""
    lines = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open()
    with lines:
        return [json.loads(line)["text"] for line in lines if line.strip()]


def work(model: str, path: Path) -> None:
    """Answer ``B N`` with the milliseconds of N calls with B texts, ``scores`` with scores."""
    import mlflow.pyfunc

    os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{Path(os.environ['FOURSTAGE_HOME'])}/mlflow.db"
    loaded: Any = mlflow.pyfunc.load_model(model)
    texts = read(path)
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "scores":
            print(*(found["score"] for found in loaded.predict(texts[:COMPARED])), flush=True)
            continue
        size, calls = map(int, line.split())
        taken = []
        for call in range(calls):
            start = call * size % max(1, len(texts) - size)
            began = time.perf_counter()
            loaded.predict(texts[start : start + size])
            taken.append(1000 * (time.perf_counter() - began))
        print(*taken, flush=True)


def measure(model: str, texts: Path, peers: str, rounds: int) -> dict[str, Any]:
    """Median milliseconds a call by name and size, and how far the scores are apart."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "converted"
        convert = [sys.executable, "-m", "fourstage.command", "convert", model, str(folder)]
        subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
        plain = Path(temporary) / "texts.json"
        plain.write_text(json.dumps(read(texts)), "utf-8")
        this = (sys.executable, "-m", "benchmarks.prediction", model, str(texts), "--work")
        commands = {"fourstage": this, "transformers": (peers, str(PEER), str(folder), str(plain))}
        with started(commands) as workers:
            scores = [worker.ask("scores") for worker in workers.values()]
            apart = max(abs(a - b) for a, b in zip(*scores, strict=True))
            if apart > TOLERANCE:
                raise SystemExit(f"scores of {COMPARED} texts differ by up to {apart:.2g}")
            taken: dict[int, dict[str, list[float]]] = {
                size: {name: [] for name in workers} for size in SIZES
            }
            for size, calls in SIZES.items():
                for worker in workers.values():
                    worker.ask(f"{size} 3")  # warms up
                for _ in range(rounds):
                    for name, worker in workers.items():
                        taken[size][name] += worker.ask(f"{size} {calls}")
    return {
        "scores_apart": apart,
        "milliseconds": {
            size: {name: round(median(each), 2) for name, each in of.items()}
            for size, of in taken.items()
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--peers", help="a Python that has torch and transformers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.work:
        work(options.model, options.texts)
        return
    found = measure(options.model, options.texts, options.peers, options.rounds)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"scores of {COMPARED} texts differ by at most {found['scores_apart']:.1g}")
    for size, of in found["milliseconds"].items():
        ratio = of["transformers"] / of["fourstage"]
        each = ", ".join(f"{name} {taken} ms" for name, taken in of.items())
        print(f"{size:>3} texts a call: {each}; ours is {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
