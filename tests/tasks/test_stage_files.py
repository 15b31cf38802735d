"""The files behind a registered version come from the store, and from MLflow where that is gone."""

from __future__ import annotations

import shutil

import pytest

from fourstage.errors import RecipeError
from tasks.stage_files import stage_files
from tests.tasks.lifecycle import Lifecycle
from tests.tasks.test_registry import NAME, make_version


def test_they_are_the_stages_own_from_the_store_and_from_mlflow(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    lifecycle = Lifecycle(home, 1, saved_model)
    weights = lifecycle["stage finetune"].path("network.safetensors").read_bytes()
    vocabulary = lifecycle["tokenizer"].path("vocabulary.txt").read_bytes()
    for place in ("store", "MLflow"):
        with stage_files(f"models:/{NAME}/1") as (stage, tokenizer):
            inside = (home / "store") in stage.parents
            assert inside == (place == "store")
            assert (stage / "network.safetensors").read_bytes() == weights
            assert (stage / "heads" / "masked_lm.safetensors").is_file()
            assert (tokenizer / "vocabulary.txt").read_bytes() == vocabulary
        shutil.rmtree(home / "store", ignore_errors=True)


def test_a_version_that_is_not_there_is_said(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    with pytest.raises(RecipeError, match=f"{NAME} has no version 7"), stage_files(f"{NAME}/7"):
        pass
