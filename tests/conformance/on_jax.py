"""Run by `test_jax.py` on either backend: names of the weights and the losses of a short training.

Weights and noise come from NumPy, so that both backends start from the same bits.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from models import catalogue
from models.weights import load_weights, named_weights
from tests.conformance.parts import Stage, family_of, stage


def run(steps: int) -> dict:
    """BERT with both objectives, dropout 0, and the first loss of BERT with each head.

    Returns:
        {"backend", "names", "losses", "heads"}.
    """
    import keras

    made = stage("bert", ("masked_lm", "next_sentence"), None, dropout=0.0)
    names = _start(made)
    return {
        "backend": keras.backend.backend(),
        "names": names,
        "losses": made.train(steps),
        "heads": {head: _first_loss(head) for head in catalogue.names("heads")},
    }


def _first_loss(head: str) -> float:
    made = stage(family_of(head), (), head, dropout=0.0)
    _start(made)
    total, weight = made.scores()[0][head]["loss"]
    return float(total) / float(weight)


def _start(made: Stage) -> list[str]:
    """Give a stage weights from NumPy; their names."""
    rng = np.random.default_rng(0)
    names = []
    for layer in (made.network, *made.scorers.values()):
        variables = named_weights(layer)
        names += list(variables)
        load_weights(
            layer,
            {
                name: rng.normal(0.0, 0.02, variable.shape).astype("float32")
                + (1.0 if name.endswith(("gamma", "deviation")) else 0.0)
                for name, variable in variables.items()
            },
        )
    return names


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))  # noqa: T201
