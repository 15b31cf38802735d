"""What a run refuses once it knows the rows of its dataset."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from fourstage.errors import ContractViolation
from tasks.planning.plan import plan_recipe
from tasks.planning.trials import plan_search
from tasks.run.recipe_run import RecipeRun, raise_if_not_measurable
from tasks.run.trials import raise_if_none_could_go_on
from tasks.store.artifacts import Artifact
from tasks.tracking.connection import Tracking

RECIPE = (
    "{name: x, family: bert, size: tiny, tokenizer: {vocabulary_size: 500, learn_from:"
    " [smoke_general]}, stages: [{stage: finetune, dataset: smoke_label_set, head:"
    " {multi_label_classification: {threshold: THRESHOLD}}}]}"
)


@pytest.mark.parametrize(
    ("minutes", "end", "left"), [(1, None, 60), (1, 100.0, 100), (None, 100.0, 100)]
)
def test_an_end_that_is_given_holds_in_place_of_the_recipes_minutes(minutes, end, left):
    plan = plan_recipe("quickstart", [f"limits={{minutes: {minutes}}}"] if minutes else [])
    now = time.monotonic()
    tracking = cast(Tracking, None)  # no step is made
    run = RecipeRun(plan, tracking, "", end and now + end, started=now)
    assert run.seconds_left == pytest.approx(left, abs=5)
    if minutes and end is None:
        assert replace(run, end=math.inf).seconds_left == math.inf


def dataset(**splits: int) -> Artifact:
    facts = {"counts": {"splits": splits}}
    return Artifact("dataset", "", Path(), {}, facts, "", "", {}, {}, {}, "")


@pytest.mark.parametrize(("threshold", "dev", "refused"), [("dev", 0, True), ("dev", 9, False),
                                                           ("0.5", 0, False)])  # fmt: skip
def test_a_threshold_that_dev_rows_choose_needs_some(tmp_path: Path, threshold, dev, refused):
    file = tmp_path / "x.yaml"
    file.write_text(RECIPE.replace("THRESHOLD", threshold), encoding="utf-8")
    plan = plan_recipe(str(file), [])
    rows = dataset(train=90, dev=dev, test=9)
    if not refused:
        raise_if_not_measurable(plan, "smoke_label_set", rows)
        return
    with pytest.raises(
        ContractViolation, match=r"none \(90 train, 9 .*, or give the threshold as a number\.$"
    ):
        raise_if_not_measurable(plan, "smoke_label_set", rows)


@pytest.mark.parametrize(
    ("setting", "refused"),
    [("select={metric: accuracy}", True), ("stop={patience: 2}", True), ("batch_size=8", False)],
)
def test_folds_that_need_no_dev_rows_are_refused_where_what_goes_on_does(setting, refused):
    search = "search={folds: 2, grid: {batch_size: [8, 16]}}"
    given = ["stages.finetune.select=", search, f"stages.finetune.{setting}"]
    plan = plan_recipe("quickstart", given)
    assert plan.recipe.finetune is not None
    name = str(plan.recipe.finetune.dataset)
    made = {f"dataset {name}": dataset(train=90, dev=0, test=9)}
    raise_if_not_measurable(plan, name, made[f"dataset {name}"])  # a trial has dev rows
    combinations = plan_search(plan, "quickstart", given, False)
    if not refused:
        raise_if_none_could_go_on(combinations, made)
        return
    with pytest.raises(ContractViolation, match="which stage finetune chooses by, got none"):
        raise_if_none_could_go_on(combinations, made)


def test_a_model_that_no_row_could_evaluate_is_not_trained(tmp_path: Path):
    file = tmp_path / "x.yaml"
    file.write_text(RECIPE.replace("THRESHOLD", "0.5"), encoding="utf-8")
    plan = plan_recipe(str(file), [])
    with pytest.raises(
        ContractViolation, match=r"expected test rows, which the model is evaluated on, got none"
    ):
        raise_if_not_measurable(plan, "smoke_label_set", dataset(train=90, dev=9))
    on_dev = plan_recipe(str(file), ["evaluate.split=dev"])
    raise_if_not_measurable(on_dev, "smoke_label_set", dataset(train=90, dev=9))


PRETRAINED = (
    "{name: x, family: gpt2, size: tiny, tokenizer: {vocabulary_size: 500}, stages: [{stage:"
    " general, corpora: {smoke_general: 1.0}, objectives: {causal_lm: {}}}], evaluate: {ASKED}}"
)


@pytest.mark.parametrize(
    "asked",
    [
        "probes: {smoke_labels: accuracy}",
        "few_shot: {smoke_labels: {shots: [0, 4]}}",
        "prototypes: {smoke_labels: {ways: [2]}}",
    ],
)
def test_a_network_is_not_trained_for_rows_that_are_not_there(tmp_path: Path, asked: str):
    file = tmp_path / "x.yaml"
    file.write_text(PRETRAINED.replace("ASKED", asked), encoding="utf-8")
    plan = plan_recipe(str(file), [])
    what = f"expected test rows, which evaluate.{asked.partition(':')[0]} asks, got none"
    with pytest.raises(ContractViolation, match=what):
        raise_if_not_measurable(plan, "smoke_labels", dataset(train=90, dev=9))
    raise_if_not_measurable(plan, "another", dataset(train=90))
    raise_if_not_measurable(plan, "smoke_labels", dataset(train=4, test=1))
    if "shots: [0, 4]" in asked:
        with pytest.raises(ContractViolation, match="expected 4 training rows or more, which"):
            raise_if_not_measurable(plan, "smoke_labels", dataset(train=3, test=9))


def test_where_nothing_is_pre_trained_nothing_is_probed(tmp_path: Path):
    file = tmp_path / "x.yaml"
    file.write_text(RECIPE.replace("THRESHOLD", "0.5"), encoding="utf-8")
    plan = plan_recipe(str(file), ["evaluate.probes={smoke_labels: accuracy}"])
    raise_if_not_measurable(plan, "smoke_labels", dataset(train=90, dev=9))
