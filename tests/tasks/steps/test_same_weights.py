"""A stage gets the weights of another one if only settings of its answers differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from models.stage_format import CONFIG
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.steps.same_weights import stage_of_same_weights, take_weights
from tasks.store.artifacts import Artifact, store
from tasks.store.steps import Bound, bind
from tests.flows import test_generation
from tests.tasks.step_by_step import made_here

pytestmark = pytest.mark.usefixtures("at_home")
HEAD = "stages.finetune.head.sequence_to_sequence"
FINETUNE = "stage finetune"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Plan]:
    """Plans of a recipe that writes, its steps up to the last stage."""
    file = tmp_path_factory.mktemp("project") / "writes.yaml"
    recipe = {**test_generation.RECIPE, "stages": [dict(test_generation.RECIPE["stages"][1])]}
    del recipe["stages"][0]["select"]
    file.write_text(yaml.safe_dump(recipe), "utf-8")

    def plan(*overrides: str) -> Plan:
        whole = plan_recipe(str(file), overrides, smoke=True)
        names = list(whole.steps)
        kept = names[: names.index(FINETUNE) + 1]
        return Plan(whole.recipe, {name: whole.steps[name] for name in kept}, whole.folders, True)

    return plan


@pytest.fixture(scope="module")
def made(at_home: None, planned: Callable[..., Plan]) -> dict[str, Artifact]:
    return made_here(planned())


def bound(plan: Plan, made: dict[str, Artifact]) -> Bound:
    found = bind(plan.steps[FINETUNE], made)
    assert isinstance(found, Bound)
    return found


def test_it_is_the_stage_that_training_would_make(
    planned: Callable[..., Plan], made: dict[str, Artifact], tmp_path: Path
):
    plan = planned(f"{HEAD}.beams=3", f"{HEAD}.no_repeat_ngram=2", f"{HEAD}.min_tokens=2")
    step = bound(plan, made)
    other = stage_of_same_weights(step, store())
    assert other is not None
    assert other.key == made[FINETUNE].key != step.key
    found = take_weights(step, other, tmp_path)
    trained = made_here(plan)[FINETUNE]
    assert (tmp_path / CONFIG).read_text() != other.path(CONFIG).read_text()
    for name in trained.outputs:
        assert (tmp_path / name).read_bytes() == trained.path(name).read_bytes() or "notes" in name
    assert {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()} == {
        *map(Path, trained.outputs)
    }
    assert found.facts == trained.facts
    assert found.notes["metrics"].keys() == trained.notes["metrics"].keys()
    assert found.notes["weights_of"] == other.key


@pytest.mark.parametrize(
    "other",
    [
        f"{HEAD}.target_length=12",
        f"{HEAD}.label_smoothing=0.1",
        "stages.finetune.select={metric: chrf}",
        "seed=2",
    ],
)
def test_other_weights_are_trained(
    planned: Callable[..., Plan], made: dict[str, Artifact], other: str
):
    step = bound(planned(other, f"{HEAD}.beams=4"), made)
    assert stage_of_same_weights(step, store()) is None


def test_a_damaged_stage_gives_no_weights(
    planned: Callable[..., Plan], made: dict[str, Artifact], tmp_path: Path
):
    step = bound(planned(f"{HEAD}.beams=5"), made)
    assert stage_of_same_weights(step, store()) is not None
    for entry in store().entries("stage"):
        config = entry.path(CONFIG)
        config.write_text(config.read_text() + "\n")
    assert stage_of_same_weights(step, store()) is None
