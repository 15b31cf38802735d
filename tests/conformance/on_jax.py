"""Run by `test_jax.py` on either backend: names of the weights and the losses of a short training.

Weights and noise come from NumPy, so that both backends start from the same bits.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from models.weights import load_weights, named_weights
from tests.conformance.parts import stage


def run(steps: int) -> dict:
    """BERT with both objectives, dropout 0: {"backend", "names", "losses"}."""
    import keras

    made = stage("bert", ("masked_lm", "next_sentence"), None, dropout=0.0)
    rng = np.random.default_rng(0)
    names = []
    for layer in (made.network, *made.scorers.values()):
        variables = named_weights(layer)
        names += list(variables)
        load_weights(
            layer,
            {
                name: rng.normal(0.0, 0.02, variable.shape).astype("float32")
                + (1.0 if name.endswith("gamma") else 0.0)
                for name, variable in variables.items()
            },
        )
    return {"backend": keras.backend.backend(), "names": names, "losses": made.train(steps)}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))  # noqa: T201
