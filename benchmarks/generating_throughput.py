"""Seconds and peak memory of one training step of GPT-2 and T5, against Hugging Face's.

``python -m benchmarks.generating_throughput --peers .venv-bench/bin/python``. One network
everywhere: 4 layers of 256 (T5: 4 and 4), vocabulary 32,000, 32 rows of 128 tokens (T5: targets of
32), AdamW, clipping, float32; every position is scored. Peers run in turns, a few steps each;
medians are reported. Memory is that of the whole process at its peak, and before its first step.
``--json`` prints one object.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.workers import started

PEER = Path(__file__).with_name("peers") / "transformers_generating_step.py"
KINDS = ("gpt2", "t5")


def measure(kind: str, peers: str, dropout: float, rounds: int, steps: int) -> dict[str, Any]:
    """Of each one, by its name, the median seconds of a step and the megabytes."""
    commands = {
        "Fourstage": (sys.executable, "-m", "benchmarks.generating_step", kind, str(dropout))
    }
    if peers:
        commands |= {
            f"transformers, {execution}": (peers, str(PEER), kind, execution, str(dropout))
            for execution in ("eager", "compile")
        }
    found: dict[str, list[float]] = {name: [] for name in commands}
    at_first, megabytes = {}, {}
    with started(commands) as workers:
        for worker in workers.values():
            worker.ask("3")  # warms up
        for _ in range(rounds):
            for name, worker in workers.items():
                *seconds, at_first[name], megabytes[name] = worker.ask(str(steps))
                found[name] += seconds
    return {
        name: {
            "seconds": round(median(taken), 4),
            "megabytes": round(megabytes[name]),
            "megabytes_at_first": round(at_first[name]),
        }
        for name, taken in found.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default="", help="a Python that has torch and transformers")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="a round and peer")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {
        kind: measure(kind, options.peers, options.dropout, options.rounds, options.steps)
        for kind in options.kinds
    }
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for kind, each in found.items():
        print(f"\n{kind}, dropout {options.dropout}")
        ours = each["Fourstage"]["seconds"]
        for name, row in each.items():
            print(
                f"  {name:<24}{row['seconds']:>9.3f} s{row['megabytes']:>8,} MB,"
                f" {row['megabytes_at_first']:,} before the first step;"
                f"  Fourstage is {row['seconds'] / ours:.2f} times as fast"
            )


if __name__ == "__main__":
    main()
