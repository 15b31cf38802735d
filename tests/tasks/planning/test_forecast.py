"""What a run will cost: as measured here, else as a formula says, and labelled as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.catalogue import find, literals
from tasks.planning.forecast import (
    SECONDS_A_TOKEN,
    SECONDS_A_WEIGHT,
    disk_bytes,
    shares,
    stage_costs,
    tokens_per_second,
)
from tasks.planning.plan import plan_recipe
from tasks.store.artifacts import Artifact, Store
from tasks.store.steps import PreviousArtifacts, look_ahead
from tests.flows.own_project import Project, recipe, stages
from tests.models.weightless import weightless

TINY = {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512}
MINI = {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024}


def _stage(network: dict, speed: float, **settings) -> Artifact:
    preimage = {"settings": {"family": "bert", "network": network, **settings}}
    notes = {"tokens_per_second": speed}
    return Artifact("stage", "", Path(), {}, {}, "", "stage general", notes, {}, preimage, "")


def test_speed_is_that_of_the_same_network_here():
    made = [_stage(TINY, speed) for speed in (9.0, 500.0, 100.0, 200.0, 300.0, 400.0)]
    asked = TINY | {"max_sequence_length": 512}  # a default, which keys leave out
    assert tokens_per_second("bert", asked, 4000, made) == (300.0, True)  # the latest five's
    for family, network in (("bert", MINI), ("roberta", TINY)):
        assert tokens_per_second(family, network, 4000, made)[1] is False


def test_rows_are_read_at_another_speed():
    made = [_stage(TINY, 500.0), _stage(TINY, 900.0, head={"sequence_classification": {}})]
    assert tokens_per_second("bert", TINY, 4000, made) == (500.0, True)
    assert tokens_per_second("bert", TINY, 4000, made, head=True) == (900.0, True)
    assert tokens_per_second("bert", TINY, 4000, made[:1], head=True) == (500.0, True)


def test_vectors_that_train_themselves_are_no_network_of_layers(tmp_path: Path):
    rows = [_stage(TINY, 500.0, head={"sequence_classification": {}})]
    assert tokens_per_second("bert", TINY, 4000, rows, trains_itself=True) == (200_000, False)
    plan, store = plan_recipe("history/word2vec-skipgram", smoke=True), Store(tmp_path)
    ahead = list(look_ahead(list(plan.steps.values()), store))
    general, finetune = stage_costs(plan.recipe, ahead, PreviousArtifacts(store))
    assert (general.tokens_per_second, general.measured) == (200_000, False)
    assert finetune.tokens_per_second < 25_000, "a head learns by gradient descent"


def test_without_a_measurement_larger_networks_are_slower():
    tiny, mini = (tokens_per_second("bert", network, 4000, [])[0] for network in (TINY, MINI))
    assert 10_000 < tiny < 25_000
    assert 4_000 < mini < 8_000


@pytest.mark.parametrize("family", ["lxmert", "vilbert"])
def test_blocks_of_regions_are_weighed_as_those_of_text(family: str):
    """The formula leaves out biases, norms and embeddings: 1 % of the published blocks."""
    size = literals("families", family)["SIZES"]["base"]
    with weightless():
        network = find("families", family)(vocabulary_size=10, **size)
    parts = [*network.blocks, *getattr(network, "cross_blocks", [])]
    if family == "lxmert":
        parts += network.region_encoder.blocks
    weights = sum(part.count_params() for part in parts)
    seconds = 1 / tokens_per_second(family, size, 0, [])[0] - SECONDS_A_TOKEN
    assert seconds / SECONDS_A_WEIGHT == pytest.approx(weights, rel=0.01)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project") / "own")


def test_budgets_of_every_unit_become_tokens_and_minutes(project: Project, tmp_path: Path):
    written = stages(domain={"budget": {"tokens": 5000}})
    plan = plan_recipe(str(project.recipe(recipe("costs", stages=written))))
    store = Store(tmp_path)
    ahead = list(look_ahead(list(plan.steps.values()), store))
    costs = {cost.stage: cost for cost in stage_costs(plan.recipe, ahead, PreviousArtifacts(store))}
    assert list(costs) == ["general", "domain", "task", "finetune"]
    assert costs["general"].tokens == 30 * 8 * 32  # steps × rows × tokens
    assert costs["domain"].tokens == 5000
    assert costs["finetune"].passes == {"rows": 2.0}
    for cost in costs.values():
        assert cost.seconds == pytest.approx(cost.tokens / cost.tokens_per_second)
        assert not cost.measured


def test_passes_over_rows_that_are_not_counted_yet_are_not_called_free(tmp_path: Path):
    plan = plan_recipe("quickstart")  # its rows come from installed packages
    store = Store(tmp_path)
    ahead = list(look_ahead(list(plan.steps.values()), store))
    *before, finetune = stage_costs(plan.recipe, ahead, PreviousArtifacts(store))
    assert all(cost.tokens and cost.seconds for cost in before)
    assert (finetune.tokens, finetune.seconds, finetune.passes) == (None, None, {})


def test_a_draw_of_training_rows_is_not_taken_for_all_of_them(project: Project, tmp_path: Path):
    drawn = stages(finetune={"training_rows": 8}, task={"budget": {"epochs": 3}})
    store, found = Store(tmp_path), []
    for number, of in enumerate((stages(task={"budget": {"epochs": 3}}), drawn)):
        plan = plan_recipe(str(project.recipe(recipe(f"drawn{number}", stages=of))))
        ahead = list(look_ahead(list(plan.steps.values()), store))
        found.append(stage_costs(plan.recipe, ahead, PreviousArtifacts(store)))
    (*_, task, finetune), (*_, task_of_all, few) = found
    assert task.passes == task_of_all.passes == pytest.approx({"rows": 3.0})
    assert task.tokens == task_of_all.tokens
    assert finetune.tokens
    assert few.tokens is None, "rows that are not counted yet"


def test_of_a_mixture_each_dataset_is_read_by_its_rate(project: Project, tmp_path: Path):
    general, *_, finetune = stages(general={"objectives": {"causal_lm": {}}})
    finetune |= {
        "dataset": "smoke_text",
        "head": {"sequence_to_sequence": {"target_length": 8, "prefix": "go on:"}},
        "mixture": {"beside": {"rows": "about:"}, "limit": 100},
    }
    said = {"stages": [general, finetune], "family": "gpt2", "promote": None}
    plan = plan_recipe(str(project.recipe(recipe("mix", evaluate=None, **said))))
    store = Store(tmp_path)
    ahead = list(look_ahead(list(plan.steps.values()), store))
    *_, cost = stage_costs(plan.recipe, ahead, PreviousArtifacts(store))
    assert (cost.tokens, cost.passes) == (None, {}), "rows that are not counted are not free"
    # 300 and 120 rows of 20 and of 10 tokens, as often: two thirds of the tokens are of the first.
    found = shares(plan.recipe.stages[-1], {"smoke_text": 300, "rows": 120},
                   {"smoke_text": 6000.0, "rows": 1200.0})  # fmt: skip
    assert found == pytest.approx({"smoke_text": 2 / 3, "rows": 1 / 3})


def test_a_larger_network_needs_more_disk(project: Project, tmp_path: Path):
    store = Store(tmp_path)

    def needed(size: str) -> float:
        plan = plan_recipe(str(project.recipe(recipe(size, size=size))))
        ahead = list(look_ahead(list(plan.steps.values()), store))
        return disk_bytes(plan.recipe, ahead, PreviousArtifacts(store))

    assert 20e6 < needed("tiny") < needed("mini") < 1e9
