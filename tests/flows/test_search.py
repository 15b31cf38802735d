"""A search as one types it: trials, the choice by dev rows, one look at the test rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from corpora.shards import TokenisedRows
from tasks.steps.tokens import ROWS
from tasks.store.artifacts import Artifact, Store
from tests.flows.person import Person, end_all

RECIPE = """
name: searched
family: bert
size: {num_layers: 1, hidden_dim: 32, num_heads: 2, intermediate_dim: 64}
tokenizer: {vocabulary_size: 500, learn_from: [smoke_general]}
seed: 2
stages:
  - {stage: general, corpora: {smoke_general: 1.0}, objectives: {masked_lm: {}},
     sequence_length: 32, batch_size: 8, budget: {steps: 4}}
  - {stage: finetune, dataset: smoke_labels, head: {sequence_classification: {}}, batch_size: 8,
     sequence_length: 32, budget: {steps: 4}}
evaluate: {metrics: [accuracy]}
search:
  grid: {optimizer.adamw.peak_learning_rate: [1.0e-9, 1.0e-3, 1.0e-2]}
  seeds: [2, 3]
"""


def trials_of(client: MlflowClient, run: str) -> dict[str, float]:
    """The finished trials below a lifecycle run: their scores by name."""
    experiment = client.get_run(run).info.experiment_id
    runs = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{run}'")
    assert {each.info.status for each in runs} == {"FINISHED"}
    return {
        each.data.tags["fourstage.trial"]: each.data.metrics["dev/accuracy"]
        for each in runs
        if "fourstage.trial" in each.data.tags
    }


def ids(rows: Artifact, split: str) -> set[str]:
    """The rows of a split."""
    return set(TokenisedRows(rows.path(ROWS), split).ids)


@pytest.mark.slow
def test_the_best_by_dev_goes_on_and_test_is_read_once(tmp_path: Path):
    (tmp_path / "searched.yaml").write_text(RECIPE)
    person = Person(tmp_path / "home", tmp_path)
    try:
        answer = person.types("run", "searched.yaml", "--json")
        assert answer.code == 0, answer.told()
        table: dict[str, Any] = answer.json["search"]
        means = [point["mean"] for point in table["points"]]
        assert table["chosen"] == means.index(max(means))
        chosen = table["points"][table["chosen"]]
        store = Store(person.home)
        evaluations = list(store.entries("evaluation"))
        assert len(evaluations) == 1, "test rows are predicted once"
        stage = answer.json["stages"][-1]
        settings = store.find("stage", stage["key"]).preimage["settings"]
        rate = chosen["settings"]["optimizer.adamw.peak_learning_rate"]
        assert settings["optimizer"]["adamw"]["peak_learning_rate"] == rate
        assert settings["seed"] == 2
        assert stage["status"] == "trained"
        assert stage["task_metric"]["value"] == chosen["scores"][0]
        client = MlflowClient(f"sqlite:///{person.home / 'mlflow.db'}")
        trials = trials_of(client, answer.json["lifecycle_run"])
        assert len(trials) == 5, "six but the one that is the stage"
        assert set(trials.values()) <= {s for point in table["points"] for s in point["scores"]}
        files = {f.path for f in client.list_artifacts(answer.json["lifecycle_run"])}
        assert {"search.json", "recipe.yaml"} <= files
        compared = person.types("compare", "searched.yaml", "--seeds", "2", "--json")
        assert compared.code == 0, compared.told()
        (recipe,) = compared.json["recipes"]
        assert recipe["evaluations"] == {"2": evaluations[0].key}, "it is compared as searched"
        assert any(note.startswith("searched: of 3 settings") for note in compared.json["notes"])
    finally:
        end_all(person.home)


@pytest.mark.slow
def test_settings_with_which_training_diverges_are_left_out(tmp_path: Path):
    # Each update multiplies the weights by 1 - 10 · 1.
    rates = "[10.0, 1.0e-3], optimizer.adamw.weight_decay: [1.0]"
    wild = RECIPE.replace("[1.0e-9, 1.0e-3, 1.0e-2]", rates).replace("[2, 3]", "[2]")
    (tmp_path / "searched.yaml").write_text(wild.replace("steps: 4", "steps: 60"))
    person = Person(tmp_path / "home", tmp_path)
    try:
        answer = person.types("run", "searched.yaml", "--json")
        assert answer.code == 0, answer.told()
        table: dict[str, Any] = answer.json["search"]
        place = "optimizer.adamw.peak_learning_rate"
        decay = {"optimizer.adamw.weight_decay": 1.0}
        assert table["diverged"] == [{place: 10.0, **decay}]
        assert [point["settings"] for point in table["points"]] == [{place: 1e-3, **decay}]
        assert "is left out: finetune: " in answer.err
        planned = person.types("plan", "searched.yaml", "--json")
        assert {step["status"] for step in planned.json["steps"]} == {"reused"}
        again = person.types("run", "searched.yaml", "--json")
        assert again.json["search"] == table
        assert "is left out: finetune: " in again.err, "said, though it is not trained again"
    finally:
        end_all(person.home)


@pytest.mark.slow
def test_folds_choose_by_training_rows_that_a_trial_has_not_seen(tmp_path: Path):
    folded = RECIPE.replace("seeds: [2, 3]", "folds: 2")
    (tmp_path / "searched.yaml").write_text(folded)
    person = Person(tmp_path / "home", tmp_path)
    try:
        answer = person.types("run", "searched.yaml", "--json")
        assert answer.code == 0, answer.told()
        table: dict[str, Any] = answer.json["search"]
        assert table["folds"] == 2
        assert [len(point["scores"]) for point in table["points"]] == [2, 2, 2]
        means = [point["mean"] for point in table["points"]]
        assert table["chosen"] == means.index(max(means))
        store = Store(person.home)
        parts = [rows for rows in store.entries("rows") if "fold" in rows.preimage["settings"]]
        (whole,) = (rows for rows in store.entries("rows") if rows not in parts)
        assert sorted(rows.preimage["settings"]["fold"] for rows in parts) == [[1, 2], [2, 2]]
        # Each training row is learned from in one of two parts and answered in the other.
        train, answered = ids(whole, "train"), [ids(rows, "dev") for rows in parts]
        assert not answered[0] & answered[1]
        for part, dev in zip(parts, answered, strict=True):
            assert ids(part, "train") == train - dev
            assert dev <= train
        assert answered[0] | answered[1] == train
    finally:
        end_all(person.home)
