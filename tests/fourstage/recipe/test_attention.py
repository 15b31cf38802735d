"""Attention: which texts, rows and layers a recipe may have drawn, and of which networks."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import ResolvedRecipe, as_recipe
from fourstage.recipe.schema import Recipe
from fourstage.recipe.smoke import shrink

SOURCES = {
    "text": SourceFacts(labelled=False),
    "rows": SourceFacts(labelled=True),
    "translations": SourceFacts(labelled=True, answers="text"),
}
GENERAL = {"stage": "general", "corpora": {"text": 1.0}, "objectives": {"masked_lm": {}}}
FINETUNE = {"stage": "finetune", "dataset": "rows", "head": {"sequence_classification": {}}}
SAID = {"name": "looks", "family": "bert", "size": "tiny", "stages": [GENERAL, FINETUNE]}
TRANSLATES = {
    "family": "seq2seq",
    "stages": [
        {"stage": "finetune", "dataset": "translations", "head": {"sequence_to_sequence": {}}}
    ],
}
TEXTS = {"texts": ["A cat.", "A cat.\tA dog."]}


def resolved(attention: dict[str, Any], **changes: Any) -> ResolvedRecipe:
    said = SAID | changes | {"evaluate": {"attention": attention}}
    return resolve(Recipe.model_validate(said), SOURCES, folders=())


def test_the_last_stage_reads_unless_another_is_named():
    found = resolved({**TEXTS, "rows": 2, "layers": [2, 1, 2]})
    asked = {**TEXTS, "rows": 2, "layers": [1, 2], "stage": "finetune"}
    assert as_recipe(found)["evaluate"]["attention"] == asked
    assert found.origin("evaluate.attention.stage") == "default: the last stage"
    found = resolved({**TEXTS, "stage": "general"})
    assert as_recipe(found)["evaluate"]["attention"] == {**TEXTS, "stage": "general"}
    assert resolved(TEXTS, **TRANSLATES).attention["stage"] == "finetune"


def test_the_smoke_version_draws_the_same_texts_in_all_layers():
    attention = {**TEXTS, "layers": [12]}
    small = shrink(SAID | {"evaluate": {"attention": attention}})["evaluate"]
    assert small["attention"] == TEXTS
    assert attention["layers"] == [12]


@pytest.mark.parametrize(
    ("attention", "changes", "told"),
    [
        ({**TEXTS, "stage": "genral"}, {}, "did you mean 'general'"),
        ({"texts": ["A", " "]}, {}, "evaluate.attention.texts[1]: expected a text"),
        ({"rows": 1, "stage": "general"}, {}, "stage general has no dataset whose rows"),
        ({**TEXTS, "layers": [3]}, {}, "the network of stage finetune has layers 1 to 2, got 3"),
        (
            {**TEXTS, "layers": [1]},
            TRANSLATES,
            "evaluate.attention.layers: an alignment is one table",
        ),
        (TEXTS, {**TRANSLATES, "size": "sutskever"}, "its size has attention: none"),
        *(
            (
                TEXTS,
                {"family": family, "stages": [GENERAL]},
                f"family '{family}' attends to nothing",
            )
            for family in ("ngram", "word2vec", "elmo", "recurrent")
        ),
    ],
)
def test_what_can_not_be_drawn_is_refused(attention, changes, told: str):
    with pytest.raises(RecipeError) as caught:
        resolved(attention, **changes)
    assert told in str(caught.value)


def test_there_is_something_to_read():
    for nothing in ({"layers": [1]}, {"texts": []}, {"rows": 0}):
        with pytest.raises(ValidationError):
            resolved(nothing)
