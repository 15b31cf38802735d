"""Tokens a second of a whole masked-LM stage: text in memory, batches, updates, files.

``python -m benchmarks.stage_throughput --size base --precision bfloat16 --rows 64 --length 128
--vocabulary 30522``, with ``KERAS_BACKEND=jax`` on JAX. The text is random, frequent words first;
its documents have 200 to 800 words. Beside it stands the speed of the updates alone, in batches
that lie ready (`masked_lm_step`); the difference is what batches and records cost.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.documents import Documents

WARM_UP = 4
SHORTEST, LONGEST, SENTENCE = 200, 800, 20  # words of a document and of its sentences


def text(documents: int, vocabulary: int, seed: int) -> Documents:
    """Random words; ids 0 to 4 are the special tokens."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(SHORTEST, LONGEST, documents)
    ids = (vocabulary - 5) * rng.random(int(lengths.sum())) ** 4 + 5
    return Documents(np.split(ids.astype(np.int32), np.cumsum(lengths)[:-1]), SENTENCE)


def stage(
    size: str, precision: str, rows: int, length: int, vocabulary: int, steps: int
) -> dict[str, Any]:
    """Train a stage as a run does; its tokens a second."""
    from fourstage.recipe.defaults import STAGES
    from models.families.bert import SIZES
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
    from models.training.gradient import train
    from models.training.job import TrainingJob
    from models.training.stage import Budget, Optimizer, Phase, StageSettings

    words = [f"w{i}" for i in range(vocabulary - len(SPECIAL_TOKENS))]
    settings = StageSettings(
        kind="general",
        family="bert",
        network={**SIZES[size], "dropout": 0.0},
        phases=[Phase(length)],
        batch_size=rows,
        budget=Budget("steps", steps),
        optimizer=Optimizer("adamw", dict(STAGES["general"].adamw)),
        objectives={"masked_lm": {}},
        precision=precision,
        seed=1,
    )
    job = TrainingJob(
        settings,
        tokenizer=WordPiece([*SPECIAL_TOKENS, *words], lowercase=True),
        corpora={"text": (text(8000, vocabulary, 1), 1.0)},
        heldout={"text": text(4, vocabulary, 2)},
        checkpoint_every=steps,
    )
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        outcome = train(job, Path(folder))
    return {
        "stage": round(outcome.tokens_per_second),
        "seconds": round(time.perf_counter() - began, 1),
    }


def updates(size: str, precision: str, rows: int, length: int, vocabulary: int) -> int:
    """Positions a second of updates of batches that lie ready."""
    from benchmarks.masked_lm_step import step_of

    step = step_of(
        precision, "fourstage", 0.0, size=size, vocabulary=vocabulary, shape=(rows, length)
    )
    seconds = []
    for i in range(WARM_UP + 40):
        began = time.perf_counter()
        step()
        if i >= WARM_UP:
            seconds.append(time.perf_counter() - began)
    return round(rows * length / median(seconds))


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="mini", help="a size of BERT")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=120)
    asked = parser.parse_args()
    shape = (asked.size, asked.precision, asked.rows, asked.length, asked.vocabulary)
    print(json.dumps({**stage(*shape, asked.steps), "updates": updates(*shape)}))


if __name__ == "__main__":
    main()
