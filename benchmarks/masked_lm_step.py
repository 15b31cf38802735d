"""One masked-LM training step of ours, timed on request; worker of `pretraining_throughput`.

``python -m benchmarks.masked_lm_step float32|bfloat16 fourstage|plain DROPOUT``. ``plain`` is the
same network with Keras's own optimizer, without element-wise parts compiled by XLA and with a
whole last layer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

VOCABULARY, ROWS, LENGTH = 8192, 32, 128
BATCHES = 4


def step_of(
    precision: str,
    kind: str,
    dropout: float,
    *,
    size: str = "mini",
    vocabulary: int = VOCABULARY,
    shape: tuple[int, int] = (ROWS, LENGTH),
) -> Callable[[], float]:
    """A function that makes one update, of a batch of this shape, and returns its loss."""
    import keras

    if kind == "plain":
        from models.layers import xla_elementwise

        # Before the layers that use it are imported.
        xla_elementwise.xla_elementwise = lambda function: function
    from fourstage.settings import make_private

    make_private()
    from fourstage.recipe.defaults import STAGES
    from models import features as keys
    from models.compilation import jit_compile
    from models.families.bert import SIZES, Bert
    from models.objectives.masked_lm import MaskedLM
    from models.protocols import Context
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece
    from models.training.optimizer import make_optimizer
    from models.training.precision import policy
    from models.training.stage_model import StageModel

    keras.utils.set_random_seed(0)
    words = [f"w{i}" for i in range(vocabulary - len(SPECIAL_TOKENS))]
    context = Context(WordPiece([*SPECIAL_TOKENS, *words], lowercase=True), shape[1])
    objective = MaskedLM(context)
    network = Bert(
        vocabulary_size=vocabulary,
        **SIZES[size],
        dropout=dropout,
        activation="gelu",  # as Hugging Face computes it
        dtype=policy(precision),
    )
    network.reads_positions = kind != "plain"
    model = StageModel(network, {"masked_lm": objective.attach(network)})
    settings = {"peak_learning_rate": 1e-4, "warmup": 0.0, "decay": "constant"}
    optimizer: Any = make_optimizer({**STAGES["general"].adamw, **settings}, total_steps=10_000)
    if kind == "plain":
        optimizer = keras.optimizers.AdamW(
            1e-4, weight_decay=0.01, beta_2=optimizer.beta_2, epsilon=optimizer.epsilon
        )
        optimizer.global_clipnorm = 1.0
        optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer=optimizer, jit_compile=jit_compile())
    rng = np.random.default_rng(0)
    batches = []
    for _ in range(BATCHES):
        # Frequent words, so that there is something to learn.
        ids = (vocabulary - 5) * rng.random(shape) ** 4 + 5
        clean = {
            keys.TOKEN_IDS: ids.astype(np.int32),
            keys.SEGMENT_IDS: np.zeros(shape, np.int32),
            keys.PADDING_MASK: np.ones(shape, np.int32),
        }
        batches.append(objective.examples(clean, rng))
    model.trace_for(batches[0], lengths_vary=False)
    done = 0

    def step() -> float:
        nonlocal done
        logs: Any = model.train_on_batch(batches[done % BATCHES], return_dict=True)
        done += 1
        return float(logs["masked_lm/loss/sum"]) / float(logs["masked_lm/loss/weight"])

    return step


def main() -> None:
    """Answer each line ``N`` with the seconds of N steps, and ``loss N`` with their losses."""
    step = step_of(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    print("ready", flush=True)
    for line in sys.stdin:
        what, _, count = line.strip().rpartition(" ")
        numbers = []
        for _ in range(int(count)):
            started = time.perf_counter()
            loss = step()
            numbers.append(loss if what == "loss" else time.perf_counter() - started)
        print(*numbers, flush=True)


if __name__ == "__main__":
    main()
