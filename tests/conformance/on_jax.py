"""Run by `test_jax.py` on either backend: names of the weights and losses.

Weights and noise come from NumPy, so that both backends start from the same bits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from models import catalogue
from models.training.gradient import train
from models.training.job import TrainingJob
from models.training.stage import Budget, Phase
from models.weights import load_weights, named_weights
from tests.conformance.parts import Stage, family_of, stage
from tests.models.training.memory import ONE_LAYER, Recorder, pretraining

REMEMBERING = {"transformer_xl": "causal_lm", "xlnet": "permutation_lm"}
# Heads with a recursion over tokens, with pairs of places, with a decoder.
UNLIKE = ("token_classification", "span_extraction", "sequence_to_sequence")


def few(initial: Path | str, folder: Path | str) -> dict[str, Any]:
    """Twenty updates from a stage, and the first losses of the heads that are least alike.

    Args:
        initial: Folder of the stage.
        folder: New, for what is trained.

    Returns:
        {"backend", "steps", "heads"}; a loss an update.
    """
    report = Recorder()
    train(still(initial=Path(initial), budget=Budget("steps", 20)), Path(folder), report)
    return {
        "backend": keras.backend.backend(),
        "steps": [row["loss"] for row in report.rows],
        "heads": _of_heads(UNLIKE),
    }


def still(**changes: Any) -> TrainingJob:
    """A stage without dropout, whose weights are averaged."""
    network, phases = ONE_LAYER | {"dropout": 0.0}, [Phase(32)]
    return pretraining(network=network, phases=phases, average={"decay": 0.9}, **changes)


def every() -> dict[str, Any]:
    """BERT with both objectives, dropout 0, the first loss of each head, and that with a memory.

    Returns:
        {"backend", "names", "losses", "heads", "remembering"}; BERT's losses by objective.
    """
    made = stage("bert", ("masked_lm", "next_sentence"), None, dropout=0.0)
    names = _start(made)
    return {
        "backend": keras.backend.backend(),
        "names": names,
        "losses": _losses(made),
        "heads": _of_heads(catalogue.names("heads")),
        "remembering": {
            family: _second_loss(family, objective) for family, objective in REMEMBERING.items()
        },
    }


def _of_heads(heads: Iterable[str]) -> dict[str, float]:
    return {head: _first_loss(family_of(head), (), head) for head in heads}


def _first_loss(family: str, objectives: tuple[str, ...], head: str | None) -> float:
    # Two layers of bert are above.
    fewer = {"num_layers": 1} if family == "bert" else {}
    made = stage(family, objectives, head, dropout=0.0, **fewer)
    _start(made)
    return _loss(made)


def _second_loss(family: str, objective: str) -> float:
    """The loss of a batch that is read after itself, which the network remembers."""
    made = stage(family, (objective,), None, dropout=0.0, memory_length=16)
    _start(made)
    made.model.carry_memory(len(made.batch["token_ids"]))
    made.model(made.batch)
    return _loss(made)


def _loss(made: Stage) -> float:
    (loss,) = _losses(made).values()
    return loss


def _losses(made: Stage) -> dict[str, float]:
    """The mean loss of the batch, by scorer."""

    def scored() -> dict[str, tuple]:
        return {name: each["loss"] for name, each in made.scores()[0].items()}

    if keras.backend.backend() == "jax":
        import jax

        scored = jax.jit(scored)  # compiled once, in place of each operation of each shape
    return {name: float(total) / float(weight) for name, (total, weight) in scored().items()}


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
    which, *words = sys.argv[1:]
    print(json.dumps({"few": few, "every": every}[which](*words)))  # noqa: T201
