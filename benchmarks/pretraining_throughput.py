"""Tokens a second of one masked-LM training step, against plain Keras and Hugging Face's BERT.

``make bench`` makes the peers' environment and runs it. One network everywhere: 4 layers of 256,
vocabulary 8,192, batches of 32 × 128, 20 positions a row to predict, AdamW, clipping. Peers run in
turns, a few steps each, so that what else the machine does meets them alike; medians are reported.
``--json`` prints one object.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

from benchmarks.workers import started

TOKENS = 32 * 128
PEER = Path(__file__).with_name("peers") / "transformers_masked_lm.py"
PRECISIONS = ("float32", "bfloat16")
CURVE = 200  # steps over which our losses follow plain Keras's


def commands(peers: str, dropout: float) -> dict[str, tuple[str, ...]]:
    """How to start each one, by its name."""
    ours = (sys.executable, "-m", "benchmarks.masked_lm_step")
    found = {
        f"{kind} {precision}": (*ours, precision, kind, str(dropout))
        for kind in ("fourstage", "plain")
        for precision in PRECISIONS
    }
    if peers:
        found |= {
            f"transformers {execution} {precision} {head}": (
                *(peers, str(PEER), execution, precision, head, str(dropout)),
            )
            for execution in ("eager", "compile")
            for precision in PRECISIONS
            for head in ("published", "gathered")
        }
    return found


def measure(peers: str, dropout: float, rounds: int, steps: int) -> dict:
    """Medians in tokens a second, and our best against the best peer."""
    with started(commands(peers, dropout)) as workers:
        for worker in workers.values():
            worker.ask("3")  # warms up
        seconds: dict[str, list[float]] = {name: [] for name in workers}
        for _ in range(rounds):
            for name, worker in workers.items():
                seconds[name] += worker.ask(str(steps))
    speed = {name: round(TOKENS / median(taken)) for name, taken in seconds.items()}
    ours = max(value for name, value in speed.items() if name.startswith("fourstage"))
    others = [value for name, value in speed.items() if not name.startswith("fourstage")]
    return {
        "dropout": dropout,
        "tokens_per_second": speed,
        "ratio_to_best_peer": round(ours / max(others), 3),
    }


def loss_curve() -> float:
    """Largest difference of our losses from plain Keras's over the first steps, in nats."""
    both = {k: c for k, c in commands("", 0.0).items() if k.endswith("float32")}
    with started(both) as workers:
        ours, plain = (
            workers[f"{kind} float32"].ask(f"loss {CURVE}") for kind in ("fourstage", "plain")
        )
    return max(abs(a - b) for a, b in zip(ours, plain, strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default="", help="a Python that has torch and transformers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8, help="a round and peer")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.peers, 0.1, options.rounds, options.steps)
    found["without_dropout"] = measure(options.peers, 0.0, options.rounds, options.steps)
    found["loss_curve_difference"] = loss_curve()
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for part in (found, found["without_dropout"]):
        print(f"\ndropout {part['dropout']}: ratio to the best peer {part['ratio_to_best_peer']}")
        for name, speed in sorted(part["tokens_per_second"].items(), key=lambda each: -each[1]):
            print(f"  {name:<45} {speed:>8,} tokens/s")
    difference = found["loss_curve_difference"]
    print(f"\nlosses of {CURVE} steps: at most {difference:.2g} nats from plain Keras's")


if __name__ == "__main__":
    main()
