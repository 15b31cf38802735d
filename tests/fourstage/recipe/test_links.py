"""Recipes of knowledge graphs: what they may read, and when heads and tails can be ranked."""

from __future__ import annotations

from typing import Any

import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import ResolvedRecipe, as_recipe
from fourstage.recipe.schema import Recipe

SOURCES = {
    "text": SourceFacts(labelled=False),
    "graph": SourceFacts(labelled=True),
    "other": SourceFacts(labelled=True),
}
TRIPLES = {"stage": "general", "corpora": {"graph": 1.0}, "objectives": {"transe": {}}}


def resolved(**changes: Any) -> ResolvedRecipe:
    said = {
        "name": "linked",
        "family": "transe",
        "size": "tiny",
        "tokenizer": {"scheme": "name"},
        "stages": [TRIPLES],
        "evaluate": {"links": ["graph", "other", "graph"]},
    } | changes
    return resolve(Recipe.model_validate(said), SOURCES, folders=())


def fault(**changes: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        resolved(**changes)
    return str(caught.value)


def test_triples_are_rows_and_the_vocabulary_is_learned_from_them():
    found = resolved()
    assert found.links == ("graph", "other")
    assert found.stages[0].corpora == {"graph": 1.0}
    assert found.tokenizer.learn_from == ("graph",)
    assert not found.tokenizer.lowercase
    assert as_recipe(found)["evaluate"]["links"] == ["graph", "other"]
    assert found.sources == ("graph", "other")


def test_a_further_stage_reads_rows_as_well():
    second = {"stage": "domain", "corpora": {"other": 1.0}}
    assert resolved(stages=[TRIPLES, second]).stages[1].corpora == {"other": 1.0}


def test_other_objectives_read_no_rows_before_the_task():
    skip_gram = {**TRIPLES, "objectives": {"skip_gram": {}}}
    assert "'graph' is a dataset" in fault(stages=[skip_gram], evaluate=None)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"evaluate": {"links": ["text"]}}, "evaluate.links[0]: 'text' is a corpus"),
        ({"evaluate": {"links": ["graf"]}}, "did you mean 'graph'"),
        (
            {"stages": [{**TRIPLES, "corpora": {"text": 1.0}, "objectives": {"glove": {}}}]},
            "evaluate.links: expected transe as the objective of the last stage of pre-training",
        ),
        (
            {"stages": [{**TRIPLES, "objectives": {"transe": {"distance": "l3"}}}]},
            "'l3' is not a value of 'distance'",
        ),
        (
            {"stages": [{**TRIPLES, "optimizer": {"adamw": {"peak_learning_rate": 0.1}}}]},
            "transe trains the network itself",
        ),
    ],
)
def test_what_means_nothing_is_refused(changes: dict[str, Any], told: str):
    assert told in fault(**changes)


def test_the_smoke_version_reads_embedded_triples():
    small = resolve(load_recipe("papers/transe", smoke=True))
    assert small.links == ("smoke_triples",)
    assert small.stages[0].corpora == {"smoke_triples": 1.0}
    assert small.tokenizer.learn_from == ("smoke_triples",)
    assert (small.tokenizer.scheme, small.tokenizer.minimum_count) == ("name", 1)
