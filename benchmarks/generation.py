"""Tokens a second of generation, against transformers' ``generate`` with the same weights.

``python -m benchmarks.generation --peers .venv-bench/bin/python``. A GPT-2 of random weights writes
128 tokens after prompts of 32, greedily and with four beams, for one prompt and for sixteen. It
stops if the tokens differ. ``anew`` is ours without a cache: it reads the whole text at each step.
``--size small`` takes GPT-2's smallest published size.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.workers import Worker, started

PEER = Path(__file__).with_name("peers") / "transformers_generation.py"
SIZE = {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024}
SMALL = {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072}
# With pieces of the vocabulary, and the deviation of the weights: so large that texts vary and two
# likeliest tokens are apart, and too small to multiply rounding.
SIZES = {"mini": (SIZE, 8000, 0.5), "small": (SMALL, 50257, 0.1)}
PROMPT, NEW = 32, 128
CASES = ((1, 1), (16, 1), (1, 4), (16, 4))  # prompts, beams
ANEW = ((1, 1), (16, 1))


def write(folder: Path, size: str) -> None:
    """Write the network for both."""
    import keras

    from models.families.gpt2 import Gpt2
    from models.interchange.huggingface import save_network

    keras.utils.set_random_seed(1)
    arguments, pieces, stddev = SIZES[size]
    network = Gpt2(vocabulary_size=pieces, max_sequence_length=256, **arguments)
    for variable in network.trainable_variables:
        if len(variable.shape) == 2:
            variable.assign(keras.random.normal(variable.shape, stddev=stddev))
    save_network(network, folder)


def prompts(count: int, pieces: int) -> np.ndarray:
    """(count, `PROMPT`) ids."""
    return np.random.default_rng(count).integers(1, pieces, (count, PROMPT))


class Anew:
    """A reader that remembers the tokens only."""

    begin = ()

    def __init__(self, network: Any, output: Any):
        import tensorflow as tf

        self.longest, self._ids = network.max_sequence_length, np.zeros((0, 0), np.int32)

        @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
        def read(token_ids: Any) -> Any:
            return output.logits(network({"token_ids": token_ids})["sequence_output"][:, -1])

        self._read = read

    def start(self, token_ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """Read prompts of one length."""
        self._ids = token_ids
        return self._read(self._ids).numpy()

    def step(self, rows: np.ndarray, token_ids: np.ndarray) -> np.ndarray:
        """Read all again, and one more token."""
        self._ids = np.concatenate([self._ids[rows], token_ids[:, None]], axis=1)
        return self._read(self._ids).numpy()


def work(folder: Path, kind: str) -> None:
    """Answer ``B K N`` with milliseconds of N calls for B prompts with K beams, or with tokens."""
    from models.decoding.generate import generate
    from models.decoding.reader import Reading, cached_reader
    from models.decoding.settings import Generation
    from models.interchange.huggingface import read_checkpoint
    from models.layers.token_prediction import TokenOutput

    network = read_checkpoint(folder).build()
    output = TokenOutput(network)

    @cache
    def reader_for(beams: int) -> Any:
        if kind == "anew":
            return Anew(network, output)
        return cached_reader(Reading(network, output), beams)

    print("ready", flush=True)
    for line in sys.stdin:
        *said, asked = line.split()
        count, beams = map(int, said)
        settings = Generation(max_new_tokens=NEW, min_new_tokens=NEW, beams=beams)
        taken, found = [], []
        for _ in range(1 if asked == "tokens" else int(asked)):
            began = time.perf_counter()
            found = generate(
                reader_for(beams),
                prompts(count, network.vocabulary_size).tolist(),
                settings,
                stops={0},
                pad_id=0,
                batch_size=count,
            )
            taken.append(1000 * (time.perf_counter() - began))
        if asked == "tokens":
            taken = [token for each in found for token in each.tokens]
        print(*taken, flush=True)


def measure(
    peers: str, rounds: int, size: str, cases: Sequence[tuple[int, int]]
) -> dict[str, dict[str, float]]:
    """Median milliseconds by case and name."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "network"
        write(folder, size)
        this = (sys.executable, "-m", "benchmarks.generation", "--work", str(folder), "--kind")
        commands = {
            "fourstage": (*this, "cache"),
            "anew": (*this, "anew"),
            "transformers": (peers, str(PEER), str(folder)),
        }
        with started(commands) as workers:
            return {f"{n} × {k}": _case(workers, n, k, rounds) for n, k in cases}


def _case(workers: dict[str, Worker], count: int, beams: int, rounds: int) -> dict[str, float]:
    asked = {n: w for n, w in workers.items() if n != "anew" or (count, beams) in ANEW}
    tokens = [worker.ask(f"{count} {beams} tokens") for worker in asked.values()]  # warms up, too
    if any(each != tokens[0] for each in tokens):
        raise SystemExit(f"{count} prompts, {beams} beams: the tokens differ")
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, worker in asked.items():
            taken[name] += worker.ask(f"{count} {beams} 1")
    return {name: round(median(each), 1) for name, each in taken.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a Python that has torch and transformers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", choices=SIZES, default="mini")
    parser.add_argument("--prompts", type=int, help="measure greedy search alone, for so many")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", default="cache", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.kind)
        return
    cases = CASES if options.prompts is None else [(options.prompts, 1)]
    found = measure(options.peers, options.rounds, options.size, cases)
    if options.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for case, of in found.items():
        each = ", ".join(f"{name} {taken:g} ms" for name, taken in of.items())
        ratios = ", ".join(
            f"{taken / of['fourstage']:.2f} × {name}"
            for name, taken in of.items()
            if name != "fourstage"
        )
        print(f"{case} beams: {each}; ours is as fast as {ratios}")


if __name__ == "__main__":
    main()
