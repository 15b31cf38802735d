"""How a network answers from its prompt: every setting explicit, and what means nothing refused."""

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
    "rows": SourceFacts(labelled=True),
    "pairs": SourceFacts(labelled=True, pairs=True),
    "endings": SourceFacts(labelled=True, answers="choice"),
    "titles": SourceFacts(labelled=True, answers="text"),
}
GENERAL = {"stage": "general", "corpora": {"text": 1.0}, "objectives": {"causal_lm": {}}}


def resolved(few_shot: Any, **changes: Any) -> ResolvedRecipe:
    said = {
        "name": "asks",
        "family": "gpt3",
        "size": "tiny",
        "stages": [GENERAL],
        "evaluate": {"few_shot": few_shot},
    } | changes
    return resolve(Recipe.model_validate(said), SOURCES, folders=())


def fault(few_shot: Any, **changes: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        resolved(few_shot, **changes)
    return str(caught.value)


def test_every_setting_is_explicit_and_those_without_a_meaning_are_absent():
    asked = {"rows": {}, "endings": {"answers": "choice"}, "titles": {"answers": "text"}}
    found = resolved(asked)
    shared = {
        "shots": [0, 1, 4, 16],
        "instruction": "",
        "separator": "\n\n",
        "too_long": "refuse",
        "overlap_words": 13,
    }
    assert found.few_shot == {
        "rows": {
            **shared,
            "answers": "label",
            "metric": "accuracy",
            "template": "{text}\nAnswer: {answer}",
            "score": "per_token",
            "verbalisers": {},
            "balanced": False,
        },
        "endings": {
            **shared,
            "answers": "choice",
            "metric": "accuracy",
            "template": "{text} {answer}",
            "score": "per_token",
        },
        "titles": {
            **shared,
            "answers": "text",
            "metric": "chrf",
            "template": "{text}\nAnswer: {answer}",
            "score": "free_form",
            "beams": 4,
            "length_penalty": 0.6,
            "answer_length": 32,
        },
    }
    assert found.origin("evaluate.few_shot.rows.score") == "default"
    assert resolved(as_recipe(found)["evaluate"]["few_shot"]).few_shot == found.few_shot
    assert set(found.sources) == {"text", "rows", "endings", "titles"}


@pytest.mark.parametrize(
    ("few_shot", "told"),
    [
        ({"row": {}}, "evaluate.few_shot.row: 'row' is not a source; did you mean 'rows'"),
        ({"text": {}}, "'text' is a corpus"),
        ({"endings": {}}, "endings.answers: answers: label needs rows answered by label"),
        ({"rows": {"metric": "acuracy"}}, "rows.metric: 'acuracy' is not a metric"),
        ({"rows": {"template": "{text}"}}, "rows.template: expected {answer} once, at the end"),
        ({"rows": {"template": "{text_pair} {answer}"}}, "needs rows of two texts"),
        ({"rows": {"neutral": "A: "}}, "only score over_neutral has it, not per_token"),
        ({"rows": {"beams": 4}}, "rows.beams: only score free_form has it, not per_token"),
        ({"endings": {"answers": "choice", "balanced": True}}, "balanced: only labels have it"),
        ({"titles": {"answers": "text", "score": "per_token"}}, "score: expected free_form"),
        (
            {"titles": {"answers": "text", "metric": "perplexity"}},
            "titles.metric: 'perplexity' is not a metric here",
        ),
        ({"rows": {"shots": [1, 1]}}, "rows.shots: expected different numbers"),
    ],
)
def test_what_means_nothing_is_refused(few_shot, told):
    assert told in fault(few_shot)


def test_a_second_text_may_be_shown_where_there_is_one():
    template = "{text} And: {text_pair} So: {answer}"
    assert resolved({"pairs": {"template": template}}).few_shot["pairs"]["template"] == template


def test_only_a_network_that_has_learned_to_continue_text_is_asked():
    masked = {**GENERAL, "objectives": {"masked_lm": {}}}
    said = fault({"rows": {}}, family="bert", stages=[masked])
    assert "evaluate.few_shot: family 'bert' can't continue a prompt" in said
    head = {"sequence_classification": {}}
    finetune = {"stage": "finetune", "dataset": "rows", "head": head, "sequence_length": 32}
    assert "no pre-trained network" in fault({"rows": {}}, stages=[finetune])
    assert resolved({"rows": {}}, stages=[GENERAL, finetune]).few_shot


def test_a_split_needs_no_finetune_stage_where_rows_are_asked():
    evaluate = {"split": "dev", "few_shot": {"rows": {}}}
    assert resolved({}, evaluate=evaluate).evaluation_split == "dev"


def test_a_smoke_run_asks_few_embedded_rows_of_the_same_kind():
    template = '"{text} / {text_pair}: {answer}"'
    said = [
        "evaluate.few_shot.mrpc={verbalisers: {same: alike}, template: " + template + "}",
        "evaluate.few_shot.codah={answers: choice, rows: 7}",
    ]
    small = resolve(load_recipe("papers/gpt3-few-shot", said, smoke=True))
    assert list(small.few_shot) == ["smoke_labels", "smoke_choice"]
    labels, choices = small.few_shot["smoke_labels"], small.few_shot["smoke_choice"]
    assert (labels["shots"], labels["rows"], labels["too_long"]) == ([0, 1], 20, "fewer")
    assert labels["template"] == "{text}\nLibrary: {answer}"
    assert choices["rows"] == 7
