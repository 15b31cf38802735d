"""A process that trains stage after stage keeps nothing of those behind it."""

from __future__ import annotations

import gc

import pytest

from models.evaluation.heldout import heldout_losses
from models.evaluation.predict import predict
from models.interchange.saved_model import export_text_model, load_text_model
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tests.models.training.memory import (
    ONE_LAYER,
    Corpus,
    Rows,
    finetuning,
    pretraining,
    tokenizer,
)

ELMO = {
    "filters": [[1, 3], [2, 4]],
    "character_dim": 4,
    "max_characters": 8,
    "cell_dim": 6,
    "projection_dim": 5,
}
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


@pytest.mark.parametrize(("family", "network"), [("bert", ONE_LAYER), ("elmo", ELMO)])
def test_no_served_model_leaves_its_functions_behind(tmp_path, family, network):
    train(finetuning(family=family, network=network, **SHORT), tmp_path / "stage")
    tokenizer().save(tmp_path / "tokenizer")
    held = []
    for i in range(3):
        package = tmp_path / str(i)
        export_text_model(tmp_path / "stage", tmp_path / "tokenizer", package)
        load_text_model(package)(["waa wab"])
        held.append(functions())
    assert held[1] == held[2]
