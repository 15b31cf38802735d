"""What an objective costs: making its examples, and its training step beside masked LM's.

``python -m benchmarks.objectives [--steps] [--json]``. Examples: rows of 128 tokens in batches of
32 from two million made-up tokens, one thread, tokens a second; the best and the worst of three.
With ``--steps`` also the step of replaced-token detection and of masked LM on the network of
`masked_lm_step` in float32, in turns; medians.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.masked_lm_step import LENGTH, ROWS, VOCABULARY

DOCUMENTS, SENTENCES, WORDS = 4000, 25, 20
BATCHES, ROUNDS = 150, 3
# What each is trained with, and with which settings.
SYSTEMS: dict[str, dict[str, dict[str, Any]]] = {
    **{
        f"masked_lm, unit {unit}": {"masked_lm": {"unit": unit}}
        for unit in ("token", "word", "ngram", "span", "phrase", "entity")
    },
    **{
        name: {name: {}}
        for name in (
            "next_sentence",
            "sentence_order",
            "sentence_structure",
            "sentence_distance",
            "dialogue",
            "sentence_reordering",
            "capitalization",
            "token_document",
            "replaced_token_detection",
        )
    },
    "masked_lm, word_structure": {"masked_lm": {}, "word_structure": {}},
    "masked_lm, unit span, span_boundary": {"masked_lm": {"unit": "span"}, "span_boundary": {}},
    "masked_lm, next_sentence": {"masked_lm": {}, "next_sentence": {}},
}


class Corpus:
    """Made-up documents in memory: frequent words, pieces of words, phrases, entities and case."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        size = SENTENCES * WORDS
        self._ids = (5 + (VOCABULARY - 5) * rng.random((DOCUMENTS, size)) ** 4).astype(np.int32)
        bits = (
            rng.random((5, DOCUMENTS, size)) < np.array([0.75, 0.5, 0.1, 0.9, 0.1])[:, None, None]
        )
        self._units = sum(bit.astype(np.uint8) << i for i, bit in enumerate(bits))
        self._sentences = np.full(SENTENCES, WORDS, np.int32)
        self.lengths = np.full(DOCUMENTS, size, np.int64)
        self.num_tokens = int(self.lengths.sum())

    def __len__(self) -> int:
        return DOCUMENTS

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, lengths of sentences, unit starts."""
        return self._ids[i], self._sentences, self._units[i]


def context() -> Any:
    """A tokenizer of as many pieces, and the length."""
    from models.protocols import Context
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

    words = [f"w{i}" for i in range(VOCABULARY - len(SPECIAL_TOKENS))]
    return Context(WordPiece([*SPECIAL_TOKENS, *words], lowercase=True), LENGTH)


def examples() -> dict[str, list[int]]:
    """Tokens a second, each round's, best first."""
    from models import features as keys
    from models.inputs.batches import batches
    from models.training.assembly import build_objectives

    corpus, fixed = Corpus(), context()
    feeds = {}
    for name, settings in SYSTEMS.items():
        made = build_objectives(settings, None, fixed)
        feeds[name] = batches({"made up": (corpus, 1.0)}, list(made.values()), fixed, ROWS, seed=1)
        feeds[name].batch(0)
    speed: dict[str, list[int]] = {name: [] for name in feeds}
    for number in range(ROUNDS):
        for name, fed in feeds.items():
            tokens, began = 0, time.perf_counter()
            for k in range(number * BATCHES, (number + 1) * BATCHES):
                tokens += int(fed.batch(k)[keys.PADDING_MASK].sum())
            speed[name].append(round(tokens / (time.perf_counter() - began)))
    return {name: sorted(each, reverse=True) for name, each in speed.items()}


def steps(number: int = 12) -> dict[str, float]:
    """Seconds of a step, and replaced-token detection's against masked LM's."""
    from fourstage.settings import make_private

    make_private()
    from fourstage.recipe.defaults import STAGES
    from models.compilation import jit_compile
    from models.families.electra import Electra
    from models.inputs.batches import batches
    from models.training.assembly import build_objectives
    from models.training.optimizer import make_optimizer
    from models.training.stage_model import StageModel

    corpus, fixed = Corpus(), context()
    size = {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024}
    models, fed = {}, {}
    for name in ("masked_lm", "replaced_token_detection"):
        network = Electra(
            **size, embedding_dim=256, dropout=0.1, vocabulary_size=VOCABULARY, dtype="float32"
        )
        made = build_objectives({name: {}}, None, fixed)
        models[name] = StageModel(network, {name: made[name].attach(network)})
        optimizer = make_optimizer(STAGES["general"].adamw, total_steps=10_000)
        models[name].compile(optimizer=optimizer, jit_compile=jit_compile())
        fed[name] = batches({"made up": (corpus, 1.0)}, [made[name]], fixed, ROWS, seed=1)
        models[name].trace_for(fed[name].batch(0), lengths_vary=False)
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for k in range(number + 2):
        for name, model in models.items():
            batch = fed[name].batch(k)
            began = time.perf_counter()
            model.train_on_batch(batch)
            seconds[name] += [time.perf_counter() - began] if k > 1 else []
    found = {name: round(median(each), 4) for name, each in seconds.items()}
    found["ratio"] = round(found["replaced_token_detection"] / found["masked_lm"], 3)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = {"examples": examples()}
    if options.steps:
        found["step_seconds"] = steps()
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, speed in found["examples"].items():
        print(f"{name:<34}{speed[0]:>12,} to {speed[-1]:>10,} tokens/s")
    for name, value in found.get("step_seconds", {}).items():
        print(f"{name:<34}{value:>12}")


if __name__ == "__main__":
    main()
