"""What a run refuses once it knows the rows of its dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.errors import ContractViolation
from tasks.planning.plan import plan_recipe
from tasks.run.recipe_run import raise_if_not_measurable
from tasks.store.artifacts import Artifact

RECIPE = (
    "{name: x, family: bert, size: tiny, tokenizer: {vocabulary_size: 500, learn_from:"
    " [smoke_general]}, stages: [{stage: finetune, dataset: smoke_label_set, head:"
    " {multi_label_classification: {threshold: THRESHOLD}}}]}"
)


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
