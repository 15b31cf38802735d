"""What a wide part learns is a step of its own: who shares it, and who has another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.prepared import prepared_groups
from corpora.shards import TokenisedRows
from fourstage.errors import Interrupted
from models.heads.multi_label_classification import MultiLabelClassification
from models.linear_machine import Machine
from models.protocols import Context
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.planning.trials import plan_search
from tasks.run.recipe_run import TASKS, RecipeRun
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Artifact, store
from tasks.store.step_names import WIDE
from tasks.store.steps import Bound, bind

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


GROUPED = (
    "{name: x, family: bert, size: tiny, tokenizer: {vocabulary_size: 500}, limits: {minutes: 1},"
    " stages: [{stage: finetune, dataset: smoke_label_set, head: {multi_label_classification:"
    " {wide: true}}}]}"
)
OF_GROUPS = "wide smoke_label_set"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plan, Bound]]:
    """A plan with rows in groups, and the step of its wide part, whose inputs are made."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "x.yaml").write_text(GROUPED, "utf-8")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FOURSTAGE_HOME", str(folder))
        plan, made = plan_recipe(str(folder / "x.yaml")), dict[str, Artifact]()
        for name, step in plan.steps.items():
            bound = bind(step, made)
            assert isinstance(bound, Bound)
            if name == OF_GROUPS:
                yield plan, bound
                return
            TASKS[step.kind].fn(bound)
            found = store().find(step.kind, bound.key)
            assert isinstance(found, Artifact)
            made[name] = found


def test_it_does_not_begin_when_the_minutes_are_over(counted: tuple[Plan, Bound]):
    unconnected: Any = None
    run = RecipeRun(counted[0], unconnected, "", started=time.monotonic() - 61)
    with pytest.raises(Interrupted, match="wide smoke_label_set: stopped by the deadline before"):
        run.make(OF_GROUPS)


def test_rows_of_a_group_are_held_out_together(counted: tuple[Plan, Bound], tmp_path: Path):
    _, bound = counted
    TASKS["wide"].fn(bound)
    made = store().find("wide", bound.key)
    assert isinstance(made, Artifact)
    rows = TokenisedRows(bound.inputs["rows"].path(ROWS), "train")
    of_row = prepared_groups(bound.inputs["dataset"].folder)
    groups = [of_row[name] for name in rows.ids]
    assert 5 <= len(set(groups)) < len(rows)
    labels = tuple(bound.inputs["rows"].facts["labels"])
    tokenizer = load_tokenizer(bound.inputs["tokenizer"])
    wide = MultiLabelClassification(Context(tokenizer, 0, labels, rows), wide=True).wide
    assert wide is not None
    unseen = Machine.read(made.folder).unseen
    assert np.array_equal(unseen, wide.learned(rows, groups).unseen)
    assert not np.array_equal(unseen, wide.machine.unseen)


def test_only_rows_in_groups_are_asked_for_them():
    assert "dataset" not in smoke().steps[STEP].inputs
