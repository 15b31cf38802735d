"""What a wide part learns is a step of its own: who shares it, and who has another."""

from __future__ import annotations

from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.planning.trials import plan_search
from tasks.store.step_names import WIDE

SEARCH = "search={folds: 2, grid: {batch_size: [8, 16]}}"
STEP = "wide smoke_labels"
NETWORK_ALONE = "stages.finetune.head={sequence_classification: {}}"


def smoke(*overrides: str, seed: int | None = None) -> Plan:
    return plan_recipe("quickstart", overrides, True, seed)


def test_seeds_families_and_rates_share_it():
    rate = "stages.finetune.optimizer.adamw.peak_learning_rate=1.0e-4"
    plan, other = smoke(), smoke("family=bert", rate, "stages.domain=", seed=9)
    assert plan.steps["stage finetune"].inputs[WIDE] == STEP
    assert other.steps[STEP] == plan.steps[STEP]
    assert "seed" not in plan.steps[STEP].settings


def test_without_a_wide_part_there_is_none():
    assert STEP not in smoke(NETWORK_ALONE).steps


def test_a_part_of_the_training_rows_has_its_own():
    plan = smoke(SEARCH)
    first, second = plan_search(plan, "quickstart", [SEARCH], smoke=True)
    steps = first.trials[1].plan.steps
    name = steps["stage finetune"].inputs[WIDE]
    assert name == f"{STEP} fold 2 of 2"
    assert steps[name].inputs["rows"] == "tokens smoke_labels fold 2 of 2"
    assert second.trials[1].plan.steps[name] == steps[name]


def test_a_search_may_try_it():
    grid = "search={grid: {head.sequence_classification.wide: [false, true]}}"
    without, beside = plan_search(smoke(NETWORK_ALONE, grid), "quickstart", [NETWORK_ALONE], True)
    assert STEP not in without.plan.steps
    assert beside.plan.steps["stage finetune"].inputs[WIDE] == STEP
    for plan in (beside.plan, beside.trials[0].plan):
        names = list(plan.steps)
        assert names.index(STEP) < names.index("stage finetune")
