"""A stage's table starts from vectors of its own text, as from those of a stage of word vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fourstage.errors import Interrupted, RecipeError
from fourstage.recipe.starts import VECTORS_BY
from models.catalogue import literals
from models.stage_format import NETWORK
from tasks.planning.layout import VECTOR_TOKENS, Plan
from tasks.steps.learn_vectors import learn_vectors
from tasks.store.steps import Bound, bind
from tests.tasks.step_by_step import made_here

GENERAL: dict[str, Any] = {
    "stage": "general",
    "corpora": {"smoke_general": 1.0},
    "objectives": {"masked_lm": {}},
    "sequence_length": 32,
    "budget": {"steps": 2},
    "starts_from": {"embeddings": "word2vec"},
}
pytestmark = pytest.mark.usefixtures("at_home")
ALONE = {"name": "alone", "family": "bert", "size": "tiny", "stages": [GENERAL]}


def test_it_is_a_stage_of_word_vectors_before_it(planned: Callable[..., Plan]):
    plan = planned(ALONE, smoke=False)
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
    written = planned({**ALONE, "stages": [vectors, GENERAL | network]}, smoke=False)
    one, other = made_here(plan), made_here(written)
    for mine, theirs in (("vectors general", "stage vectors"), ("stage general", "stage general")):
        assert one[mine].path(NETWORK).read_bytes() == other[theirs].path(NETWORK).read_bytes()
    assert one["vectors general"].facts["width"] == 128
    plain = made_here(planned(ALONE, "stages.general.starts_from=", smoke=False))["stage general"]
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
    plan = planned(ALONE, *(f"stages.general.{each}" for each in settings), smoke=False)
    assert plan.steps["vectors general"].settings["tokens"] == expected


def test_vectors_are_as_wide_as_the_table(planned: Callable[..., Plan]):
    plan = planned(ALONE | {"family": "albert"}, smoke=False)
    assert plan.recipe.stages[0].network["hidden_dim"] == 128
    assert plan.steps["vectors general"].settings["network"] == {"hidden_dim": 64}
    assert plan.steps["stage general"].inputs["start of embeddings"] == "vectors general"


def test_an_earlier_stage_of_that_name_comes_first(planned: Callable[..., Plan]):
    named = {**GENERAL, "name": "word2vec"}
    del named["starts_from"]
    plan = planned(
        {**ALONE, "stages": [named, GENERAL | {"family": "bert", "size": "tiny"}]}, smoke=False
    )
    assert plan.steps["stage general"].inputs["start of embeddings"] == "stage word2vec"
    assert not plan.of_kind("vectors")


def test_text_too_short_for_a_window_and_a_deadline_are_told(planned: Callable[..., Plan]):
    plan = planned(ALONE, smoke=False)
    made = made_here(plan)
    step = plan.steps["vectors general"]
    wide = replace(
        step, settings={**step.settings, "objectives": {"skip_gram": {"window": 100_000}}}
    )
    bound = bind(wide, made)
    assert isinstance(bound, Bound)
    said = "vectors general: starts_from.embeddings: objectives.skip_gram.window: 100000 words"
    with pytest.raises(RecipeError, match=said):
        learn_vectors.fn(bound)
    later = bind(replace(step, settings={**step.settings, "seed": 2}), made)
    assert isinstance(later, Bound)
    with pytest.raises(Interrupted, match="stopped by the deadline"):
        learn_vectors.fn(later, seconds_left=0.0)
    assert learn_vectors.fn(later)["key"] == later.key  # and goes on
