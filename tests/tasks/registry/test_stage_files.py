"""The files behind a registered version come from the store, and from MLflow where that is gone."""

from __future__ import annotations

import os
import shutil

import pytest

from fourstage.digests import hash_file
from fourstage.errors import ContractViolation, RecipeError
from fourstage.recipe.loading import load_recipe
from models.interchange.pretrained_network import start_files
from tasks.registry.stage_files import by_number, pretrained_stage, stage_files
from tests.tasks.lifecycle import Lifecycle
from tests.tasks.registry.test_registry import NAME, make_version

RECIPE = """
name: r
family: bert
size: tiny
stages:
  - stage: general
    corpora: {text: 1}
    objectives: {masked_lm: {}}
    starts_from: {embeddings: "START"}
"""


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


def test_what_a_version_was_pre_trained_to_is_the_same_from_either(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    before_labels = Lifecycle(home, 1, saved_model)["stage task"].path("network.safetensors")
    weights = before_labels.read_bytes()
    files = []
    for _ in ("store", "MLflow"):
        address, folder = pretrained_stage(f"models:/{NAME}/1")
        assert address == f"models:/{NAME}/1"
        assert (folder / "network.safetensors").read_bytes() == weights
        files.append(start_files(folder))
        shutil.rmtree(folder)
        shutil.rmtree(home / "store", ignore_errors=True)
    assert files[0] == files[1]
    assert {"config.json", "tokenizer/vocabulary.txt"} <= files[0].keys()


def test_a_damaged_copy_is_made_again(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    _, folder = pretrained_stage(f"models:/{NAME}/1")
    before = start_files(folder)
    for name in ("network.safetensors", "tokenizer/vocabulary.txt"):
        with (folder / name).open("r+b") as stream:
            stream.truncate(5)
        assert start_files(folder) != before
        pretrained_stage(f"models:/{NAME}/1")
        assert start_files(folder) == before


def test_a_copy_that_is_used_again_is_as_good_as_new(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    _, folder = pretrained_stage(f"models:/{NAME}/1")
    os.utime(folder, (1.0, 1.0))
    pretrained_stage(f"models:/{NAME}/1")
    assert folder.stat().st_mtime > 1.0, "gc goes by last use"


def test_other_weights_in_mlflow_than_the_stage_had_are_refused(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    weights = Lifecycle(home, 1, saved_model)["stage task"].outputs["network.safetensors"]
    shutil.rmtree(home / "store")
    logged = [path for path in home.rglob("network.safetensors") if hash_file(path) == weights]
    assert logged
    for path in logged:
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(ContractViolation, match=r"network.safetensors of m-\w+ is not the"):
        pretrained_stage(f"models:/{NAME}/1")
    assert not list((home / "versions").glob("*"))


def test_an_alias_in_a_recipe_is_the_number_of_its_version(tracking, home, saved_model, tmp_path):
    make_version(tracking, home, saved_model, 1, stages=True)

    def recipe(start: str):
        (tmp_path / "r.yaml").write_text(RECIPE.replace("START", start), "utf-8")
        return load_recipe(tmp_path / "r.yaml")

    found, folders = by_number(recipe(f"models:/{NAME}@challenger"))
    address = f"models:/{NAME}/1"
    assert found.stages[0].starts_from == {"embeddings": address}
    assert folders == {address: pretrained_stage(address)[1]}
    assert by_number(recipe("vectors.txt"))[1] == {}
    wrong = r"r\.yaml: stages\[0\]\.starts_from\.embeddings: models:/other@champion: 'other' is not"
    with pytest.raises(RecipeError, match=wrong):
        by_number(recipe("models:/other@champion"))


def test_a_version_that_is_not_there_is_said(tracking, home, saved_model):
    make_version(tracking, home, saved_model, 1, stages=True)
    with pytest.raises(RecipeError, match=f"{NAME} has no version 7"), stage_files(f"{NAME}/7"):
        pass
