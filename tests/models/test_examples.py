"""The parts that the documentation shows as examples train on a project's own folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.training.gradient import train
from models.training.stage import Budget, Phase
from tests.models.training.memory import finetuning, pretraining

EXAMPLES = (Path(__file__).parents[2] / "docs" / "examples",)
SHORT = {"phases": [Phase(32)], "budget": Budget("steps", 6), "folders": EXAMPLES}


def test_the_objective_of_the_guide_trains(tmp_path: Path) -> None:
    outcome = train(pretraining(objectives={"shuffled_tokens": {}}, **SHORT), tmp_path)
    assert 0 < outcome.metrics["last"]["loss"] < 2
    assert (tmp_path / "heads" / "shuffled_tokens.safetensors").exists()


def test_the_family_of_the_guide_trains_with_a_head(tmp_path: Path) -> None:
    job = finetuning(
        family="word_average", network={"hidden_dim": 16}, initial=None, select=None, **SHORT
    )
    outcome = train(job, tmp_path)
    assert np.isfinite(outcome.metrics["last"]["loss"])
