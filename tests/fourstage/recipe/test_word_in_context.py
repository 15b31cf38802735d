"""Words in sentences: which rows and sentences a recipe may ask a network about."""

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
    "pairs": SourceFacts(labelled=True, pairs=True),
}
SENSES = {
    "apple": {"fruit": ["An apple.", "Eat apple pie."], "company": ["Apple sells.", "By Apple!"]}
}
SAID = {
    "name": "contexts",
    "family": "bert",
    "size": "tiny",
    "stages": [{"stage": "general", "corpora": {"text": 1.0}, "objectives": {"masked_lm": {}}}],
    "evaluate": {"word_in_context": ["pairs", "pairs"], "polysemy": SENSES, "split": "dev"},
}
COUNTED = {"family": "ngram", "stages": [{"stage": "general", "corpora": {"text": 1.0}}]}


def resolved(**changes: Any) -> ResolvedRecipe:
    return resolve(Recipe.model_validate(SAID | changes), SOURCES, folders=())


def test_rows_and_sentences_are_asked_as_they_are_written():
    found = resolved()
    assert found.word_in_context == ("pairs",)
    assert found.sources == ("text", "pairs")
    asked = as_recipe(found)["evaluate"]
    assert (asked["word_in_context"], asked["polysemy"]) == (["pairs"], SENSES)


def test_the_smoke_version_asks_about_the_recipes_own_sentences_alone():
    small = shrink(SAID)["evaluate"]
    assert "word_in_context" not in small
    assert small["polysemy"] == SENSES


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"evaluate": {"word_in_context": ["pears"]}}, "did you mean 'pairs'"),
        ({"evaluate": {"word_in_context": ["text"]}}, "word_in_context[0]: 'text' is a corpus"),
        ({"evaluate": {"word_in_context": ["rows"]}}, "a word in context needs rows of two texts"),
        (
            COUNTED | {"evaluate": {"word_in_context": ["pairs"]}},
            "family 'ngram' counts and has no",
        ),
        (
            {"evaluate": {"polysemy": {"pear": SENSES["apple"]}}},
            "evaluate.polysemy.pear.company[1]: expected a sentence with the word",
        ),
    ],
)
def test_what_means_nothing_is_refused(changes: dict[str, Any], told: str):
    with pytest.raises(RecipeError) as caught:
        resolved(**changes)
    assert told in str(caught.value)


def test_one_sense_or_one_sentence_is_too_few():
    for senses in ({"fruit": SENSES["apple"]["fruit"]}, {"a": ["apple"], "b": ["apple", "apple"]}):
        with pytest.raises(ValidationError, match="at least 2 items"):
            resolved(evaluate={"polysemy": {"apple": senses}})
