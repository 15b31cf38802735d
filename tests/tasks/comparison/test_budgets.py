"""Budgets of a comparison on equal terms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.comparison.budgets import scaled_budget
from tasks.comparison.participants import SeedRun, pretraining_stages
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact
from tasks.store.step_names import stage_step, vectors_step


def test_the_time_of_a_pre_training_is_that_of_its_updates_without_compiling(
    tmp_path: Path,
) -> None:
    plan = plan_recipe("quickstart")
    stages = pretraining_stages(plan.recipe)
    made = {
        stage_step(stage.name): Artifact(
            "stage", "", tmp_path, {}, {"tokens": 1000}, "", stage.name, notes, {}, {}, ""
        )
        for stage, notes in zip(
            stages,
            (
                {"tokens_per_second": 100.0, "seconds": 70.0},
                {"tokens_per_second": 50.0, "seconds": 80.0},
                {"tokens_per_second": 0.0, "seconds": 9.0},  # one update
            ),
            strict=True,
        )
    }
    assert SeedRun(plan, 1, made).seconds_of_updates(stages) == 10.0 + 20.0 + 9.0
    assert SeedRun(plan, 1, made).spent("seconds", stages) == 70.0 + 80.0 + 9.0
    vectors = vectors_step("general")
    notes = {"seconds": 5.0}
    made[vectors] = Artifact("vectors", "", tmp_path, {}, {}, "", vectors, notes, {}, {}, "")
    assert SeedRun(plan, 1, made).seconds_of_updates(stages) == 10.0 + 20.0 + 9.0 + 5.0
    assert SeedRun(plan, 1, made).spent("seconds", stages) == 70.0 + 80.0 + 9.0 + 5.0


@pytest.mark.parametrize(
    ("budget", "scaled"),
    [
        ("steps: 300", "steps=200"),  # its phases go on sharing updates
        ("tokens: 300", "tokens=60000"),
        ("epochs: 2", "tokens=60000"),
    ],
)
def test_a_scaled_budget_divides_its_phases_as_the_one_that_is_written(budget: str, scaled: str):
    plan = plan_recipe("quickstart", [f"stages.general.budget={{{budget}}}"])
    stage = pretraining_stages(plan.recipe)[0]
    setting = scaled_budget(stage, 60_000.0, 90_000.0)
    assert setting == f"stages.general.budget.{scaled}"
