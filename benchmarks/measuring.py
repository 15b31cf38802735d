"""Seconds and peak memory of measuring a GPT-2's held-out loss: ``python -m benchmarks.measuring``.

A batch as held-out text is measured in: 16 rows of 1,024 tokens (``--length``), GPT-2's vocabulary
of 50,257; 2 layers of 128, random weights, float32. Memory is that of the whole process at its
peak, less what it had before the first batch. ``--whole`` scores all positions at once.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

VOCABULARY, ROWS = 50_257, 16


def peak() -> float:
    """The process's peak so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def model_of(length: int) -> tuple[Any, dict[str, np.ndarray]]:
    """A model ready to measure, and a batch."""
    import keras

    from fourstage.settings import make_private

    make_private()
    from models import features as keys
    from models.families.gpt2 import Gpt2
    from models.objectives.causal_lm import CausalLM
    from models.protocols import Context
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
    from models.training.stage_model import StageModel

    keras.utils.set_random_seed(0)
    words = [f"w{i}" for i in range(VOCABULARY - len(SPECIAL_TOKENS))]
    tokenizer = WordPiece([*SPECIAL_TOKENS, *words], lowercase=True)
    network = Gpt2(
        vocabulary_size=VOCABULARY,
        max_sequence_length=length,
        num_layers=2,
        hidden_dim=128,
        num_heads=2,
        intermediate_dim=512,
    )
    objective = CausalLM(Context(tokenizer, length))
    model = StageModel(network, {"causal_lm": objective.attach(network)})
    rng = np.random.default_rng(0)
    ids = rng.integers(8, VOCABULARY, (ROWS, length)).astype(np.int32)
    batch = objective.examples({keys.TOKEN_IDS: ids, keys.PADDING_MASK: np.ones_like(ids)}, rng)
    model.ready()
    model.trace_for(batch, lengths_vary=False)
    return model, batch


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="score all positions at once")
    options = parser.parse_args()
    model, batch = model_of(options.length)
    if options.whole:
        from models.layers import token_scores

        token_scores.LARGEST = VOCABULARY * ROWS * options.length
    before, seconds = peak(), []
    for _ in range(options.batches):
        began = time.perf_counter()
        logs: Any = model.test_on_batch(batch, return_dict=True)
        seconds.append(time.perf_counter() - began)
    loss = float(logs["causal_lm/loss/sum"]) / float(logs["causal_lm/loss/weight"])
    print(
        f"{ROWS} × {options.length}: {peak() - before:,.0f} MB, {min(seconds):.1f} s a batch,"
        f" loss {loss:.6f}"
    )


if __name__ == "__main__":
    main()
