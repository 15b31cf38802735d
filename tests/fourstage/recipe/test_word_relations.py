"""What word vectors are held against, and which networks have any."""

from __future__ import annotations

from typing import Any

import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import ResolvedRecipe, as_recipe
from fourstage.recipe.schema import Recipe
from fourstage.recipe.smoke import shrink

SOURCES = {
    **dict.fromkeys(("text", "pairs"), SourceFacts(labelled=False)),
    "rows": SourceFacts(labelled=True),
}
SAID = {
    "name": "vectors",
    "family": "word2vec",
    "size": "tiny",
    "stages": [{"stage": "general", "corpora": {"text": 1.0}, "objectives": {"skip_gram": {}}}],
    "evaluate": {"word_relations": ["pairs", "pairs"], "word_map": ["king", "苹果", "king"]},
}


def resolved(**changes: Any) -> ResolvedRecipe:
    return resolve(Recipe.model_validate(SAID | changes), SOURCES, folders=())


def test_each_source_is_asked_once_and_is_no_text_of_the_recipe():
    found = resolved()
    assert found.word_relations == ("pairs",)
    assert found.sources == ("text",)
    asked = as_recipe(found)["evaluate"]
    assert (asked["word_relations"], asked["word_map"]) == (["pairs"], ["king", "苹果"])


def test_the_smoke_version_asks_nothing_that_is_not_embedded():
    assert shrink(SAID)["evaluate"] == {"word_map": ["king", "苹果", "king"]}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"evaluate": {"word_relations": ["pears"]}}, "did you mean 'pairs'"),
        (
            {"tokenizer": {"scheme": "unigram"}, "evaluate": {"word_map": ["king"]}},
            "evaluate.word_map: unigram spells a word in a text",
        ),
        *(
            ({"tokenizer": {"scheme": scheme}}, f"word_relations: {scheme} spells a word in a text")
            for scheme in ("byte_bpe", "unigram", "word_bpe")
        ),
        (
            {"evaluate": {"word_relations": ["rows"]}},
            "evaluate.word_relations[0]: 'rows' is a data",
        ),
        (
            {
                "family": "bert",
                "stages": [
                    {"stage": "general", "corpora": {"text": 1.0}, "objectives": {"masked_lm": {}}}
                ],
            },
            "whose network has one vector a word: family fasttext or glove or",
        ),
    ],
)
def test_what_means_nothing_is_refused(changes: dict[str, Any], told: str):
    with pytest.raises(RecipeError) as caught:
        resolved(**changes)
    assert told in str(caught.value)
