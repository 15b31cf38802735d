"""One training step of a network that writes, timed on request; worker of `generating_throughput`.

``python -m benchmarks.generating_step gpt2|t5 DROPOUT``. GPT-2 predicts the next token everywhere;
T5 reads `LENGTH` tokens and predicts a target of `TARGET`.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

VOCABULARY, ROWS, LENGTH, TARGET = 32_000, 32, 128, 32
SIZE = {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024}


def step_of(kind: str, dropout: float) -> Callable[[], float]:
    """A function that makes one update and returns its loss."""
    import keras

    from fourstage.settings import make_private

    make_private()
    from fourstage.recipe.defaults import STAGES
    from models import features as keys
    from models.compilation import jit_compile
    from models.families.gpt2 import Gpt2
    from models.families.t5 import T5
    from models.layers.target_scorer import TargetScorer
    from models.objectives.causal_lm import CausalLM
    from models.protocols import Context
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
    from models.training.optimizer import make_optimizer
    from models.training.stage_model import StageModel

    keras.utils.set_random_seed(0)
    words = [f"w{i}" for i in range(VOCABULARY - len(SPECIAL_TOKENS))]
    tokenizer = WordPiece([*SPECIAL_TOKENS, *words], lowercase=True)
    rng = np.random.default_rng(0)
    ids = rng.integers(8, VOCABULARY, (ROWS, LENGTH)).astype(np.int32)
    batch = {keys.TOKEN_IDS: ids, keys.PADDING_MASK: np.ones_like(ids)}
    if kind == "gpt2":
        network = Gpt2(
            vocabulary_size=VOCABULARY, max_sequence_length=LENGTH, dropout=dropout, **SIZE
        )
        objective = CausalLM(Context(tokenizer, LENGTH))
        scorer: Any = objective.attach(network)
        batch = objective.examples(batch, rng)
    else:
        network = T5(
            vocabulary_size=VOCABULARY,
            max_sequence_length=LENGTH,
            dropout=dropout,
            num_decoder_layers=SIZE["num_layers"],
            **SIZE,
        )
        scorer = TargetScorer(network, "target", tokenizer)
        target = ids[:, :TARGET]
        ones = np.ones_like(target)
        batch |= {
            keys.TARGET_IDS: target,
            keys.TARGET_MASK: ones,
            keys.TARGET_LABELS: target,
            keys.TARGET_WEIGHTS: ones.astype(np.float32),
        }
    model = StageModel(network, {"objective": scorer})
    settings = {"peak_learning_rate": 1e-4, "warmup": 0.0, "decay": "constant"}
    optimizer: Any = make_optimizer({**STAGES["general"].adamw, **settings}, total_steps=10_000)
    model.compile(optimizer=optimizer, jit_compile=jit_compile())
    model.trace_for(batch, lengths_vary=False)

    def step() -> float:
        logs: Any = model.train_on_batch(batch, return_dict=True)
        return float(logs["objective/loss/sum"]) / float(logs["objective/loss/weight"])

    return step


def main() -> None:
    """Answer each line ``N`` with the seconds of N steps; then MB at first, and at most."""
    step = step_of(sys.argv[1], float(sys.argv[2]))
    at_first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            started = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - started)
        at_most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(*seconds, at_first, at_most, flush=True)


if __name__ == "__main__":
    main()
