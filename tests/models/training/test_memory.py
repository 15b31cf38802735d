"""A process that trains stage after stage keeps nothing of those behind it."""

from __future__ import annotations

import gc

from models.evaluation.heldout import heldout_losses
from models.evaluation.predict import predict
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tests.models.training.memory import (
    Corpus,
    Rows,
    finetuning,
    pretraining,
    tokenizer,
)

SHORT = {"phases": [Phase(16)], "budget": Budget("steps", 2)}


def functions() -> int:
    """How many functions TensorFlow holds; each holds what it reads."""
    from tensorflow.python.eager import context

    gc.collect()
    return len(context.context().list_function_names())


def test_no_stage_leaves_its_functions_behind(tmp_path):
    held = []
    for i in range(2):
        folder = tmp_path / str(i)
        train(pretraining(seed=i, **SHORT), folder / "general")
        heldout_losses(folder / "general", tokenizer(), {"text": Corpus(20)}, objective="masked_lm")
        train(finetuning(seed=i, **SHORT), folder / "finetune")
        predict(folder / "finetune", tokenizer(), Rows(8))
        held.append(functions())
    # The first has made those that are made once.
    assert held[0] == held[1]
