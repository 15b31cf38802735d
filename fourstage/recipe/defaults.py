"""The defaults of a stage, by kind of stage.

The starting point is the table of Gururangan et al. 2020 (arXiv 2004.10964, tables 13 and 14):
AdamW with β .9/.98, ε 1e-6, decay .01, warm-up .06; 12,500 steps at batch 2,048 and 5e-4 for the
domain, 100 epochs at batch 256 and 1e-4 for the task, 2e-5 at batch 16 for fine-tuning. That is a
network of 125 M weights on a TPU. Here networks have 4–30 M weights, which tolerate higher rates,
on two cores, which can only afford small batches:

* batches of 32, and half the peak rate for the domain (a batch 64 times smaller gives noisier
  gradients, and half the rate also preserves more of what the general stage learned);
* 20 epochs for the task instead of 100: with new masks in each epoch the loss of small networks is
  flat from about there;
* fine-tuning at 5e-5, the upper end of BERT's grid (2e-5 to 5e-5), 3 epochs, warm-up .1, β₂ .999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SEED = 17
PRECISION = "auto"
SEQUENCE_LENGTH = 128
SCHEME = "wordpiece"
VOCABULARY_SIZE = 8000
ADAMW: dict[str, Any] = {
    "warmup": 0.06,
    "decay": "linear",
    "weight_decay": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.98,
    "epsilon": 1e-6,
    "bias_correction": "moments",
    "clip_norm": 1.0,
    "layer_decay": 1.0,
}

# Beside the others where the decay is slanted_triangular.
SLANTED = {"ratio": 32.0}
_PLAIN = {"warmup": 0.0, "clip_norm": 0.0, "layer_decay": 1.0}
# Of optimizers that have the same defaults in every stage.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    # T5's rate of fine-tuning (Raffel et al. 2020, arXiv 1910.10683, 3.1.2).
    "adafactor": {
        "peak_learning_rate": 1e-3,
        "decay": "constant",
        "weight_decay": 0.0,
        **_PLAIN,
    },
    "adagrad": {"peak_learning_rate": 0.01, "decay": "constant", "epsilon": 1e-7, **_PLAIN},
    "lamb": {
        "peak_learning_rate": 1e-3,
        "decay": "linear",
        "weight_decay": 0.01,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-6,
        **_PLAIN,
        "warmup": 0.06,
        "clip_norm": 1.0,
    },
    # Adam's rate and decay, which the scaled update takes too (Liu et al. 2025, arXiv 2502.16982).
    "muon": {
        "peak_learning_rate": 5e-4,
        "decay": "linear",
        "weight_decay": 0.01,
        "momentum": 0.95,
        "beta_1": 0.9,
        "beta_2": 0.98,
        "epsilon": 1e-6,
        **_PLAIN,
        "warmup": 0.06,
        "clip_norm": 1.0,
    },
    # fastText's of supervised training, for a row at a time.
    "sgd": {"peak_learning_rate": 0.1, "decay": "linear", **_PLAIN},
}


@dataclass(frozen=True)
class StageDefaults:
    """Values of one kind of stage."""

    batch_size: int
    budget: tuple[str, float]
    adamw: dict[str, Any]
    refresh: str


STAGES = {
    "general": StageDefaults(32, ("steps", 2000), {**ADAMW, "peak_learning_rate": 5e-4}, "never"),
    "domain": StageDefaults(
        32, ("steps", 1000), {**ADAMW, "peak_learning_rate": 2.5e-4}, "continue"
    ),
    "task": StageDefaults(32, ("epochs", 20.0), {**ADAMW, "peak_learning_rate": 1e-4}, "on_change"),
    "finetune": StageDefaults(
        16,
        ("epochs", 3.0),
        {**ADAMW, "peak_learning_rate": 5e-5, "warmup": 0.1, "beta_2": 0.999},
        "on_change",
    ),
}
