"""A stage's table starts from vectors of its own text, as from those of a stage of word vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fourstage.recipe.starts import VECTORS_BY
from models.catalogue import literals
from models.stage_format import NETWORK
from tasks.planning.layout import VECTOR_TOKENS, Plan
from tasks.planning.plan import plan_recipe
from tests.tasks.step_by_step import made_here

GENERAL: dict[str, Any] = {
    "stage": "general",
    "corpora": {"smoke_general": 1.0},
    "objectives": {"masked_lm": {}},
    "sequence_length": 32,
    "budget": {"steps": 2},
    "starts_from": {"embeddings": "word2vec"},
}
ALONE = {"name": "alone", "family": "bert", "size": "tiny", "stages": [GENERAL]}


@pytest.fixture(scope="module", autouse=True)
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FOURSTAGE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., Plan]:
    def plan(recipe: dict[str, Any], *overrides: str) -> Plan:
        file = tmp_path / f"{recipe['name']}.yaml"
        file.write_text(yaml.safe_dump(recipe), "utf-8")
        return plan_recipe(str(file), overrides)

    return plan


def test_it_is_a_stage_of_word_vectors_before_it(planned: Callable[..., Plan]):
    plan = planned(ALONE)
    step = plan.steps["vectors general"]
    vectors = {
        **GENERAL,
        "name": "vectors",
        "family": "word2vec",
        "size": {"hidden_dim": 128},
        "objectives": literals("families", "word2vec")[VECTORS_BY],
        "budget": {"tokens": step.settings["tokens"]},
    }
    del vectors["starts_from"]
    network = {"family": "bert", "size": "tiny", "starts_from": {"embeddings": "vectors"}}
    written = planned({**ALONE, "stages": [vectors, GENERAL | network]})
    one, other = made_here(plan), made_here(written)
    for mine, theirs in (("vectors general", "stage vectors"), ("stage general", "stage general")):
        assert one[mine].path(NETWORK).read_bytes() == other[theirs].path(NETWORK).read_bytes()
    assert one["vectors general"].facts["width"] == 128
    plain = made_here(planned(ALONE, "stages.general.starts_from="))["stage general"]
    assert plain.path(NETWORK).read_bytes() != one["stage general"].path(NETWORK).read_bytes()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["budget={tokens: 1000}"], 3000),
        (["budget={steps: 2}", "batch_size=4"], 3 * 2 * 4 * 32),
        (["budget={tokens: 50000000}"], VECTOR_TOKENS),
        (["budget={epochs: 1}"], VECTOR_TOKENS),
    ],
)
def test_it_reads_a_few_times_its_stages_tokens(
    planned: Callable[..., Plan], settings: list[str], expected: int
):
    plan = planned(ALONE, *(f"stages.general.{each}" for each in settings))
    assert plan.steps["vectors general"].settings["tokens"] == expected


def test_vectors_are_as_wide_as_the_table(planned: Callable[..., Plan]):
    plan = planned(ALONE | {"family": "albert"})
    assert plan.recipe.stages[0].network["hidden_dim"] == 128
    assert plan.steps["vectors general"].settings["network"] == {"hidden_dim": 64}
    assert plan.steps["stage general"].inputs["start of embeddings"] == "vectors general"


def test_an_earlier_stage_of_that_name_comes_first(planned: Callable[..., Plan]):
    named = {**GENERAL, "name": "word2vec"}
    del named["starts_from"]
    plan = planned({**ALONE, "stages": [named, GENERAL | {"family": "bert", "size": "tiny"}]})
    assert plan.steps["stage general"].inputs["start of embeddings"] == "stage word2vec"
    assert not plan.of_kind("vectors")
