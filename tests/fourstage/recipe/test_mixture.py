"""What a stage learns beside its dataset: every value explicit, what is refused by its place."""

from __future__ import annotations

from typing import Any

import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import ResolvedRecipe, as_recipe, stage_spec
from fourstage.recipe.schema import Recipe
from fourstage.recipe.smoke import shrink

SOURCES = {
    "text": SourceFacts(labelled=False),
    "own": SourceFacts(labelled=True, answers="text"),
    "other": SourceFacts(labelled=True, answers="text"),
    "labels": SourceFacts(labelled=True),
    "scores": SourceFacts(labelled=True, answers="number", pairs=True),
    "tags": SourceFacts(labelled=True, answers="spans"),
}
GENERAL = {
    "stage": "general",
    "corpora": {"text": 1.0},
    "objectives": {"span_denoising": {}},
    "sequence_length": 64,
}


def written(mixture: Any, head: Any = None, dataset: str = "own") -> dict[str, Any]:
    finetune = {
        "stage": "finetune",
        "dataset": dataset,
        "head": head or {"sequence_to_sequence": {"prefix": "translate:"}},
    }
    return {
        "name": "mixes",
        "family": "t5",
        "size": "tiny",
        "tokenizer": {"vocabulary_size": 1000, "sentinels": 10},
        "stages": [GENERAL, {**finetune, **({"mixture": mixture} if mixture else {})}],
    }


def resolved(mixture: Any, **changes: Any) -> ResolvedRecipe:
    values = written(mixture, **changes)
    return resolve(Recipe.model_validate(values), SOURCES, folders=())


def fault(mixture: Any, **changes: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        resolved(mixture, **changes)
    return str(caught.value)


def test_a_mixture_is_resolved_with_its_kinds_of_answers_and_its_sources():
    found = resolved({"beside": {"scores": "stsb:", "labels": "sst2:"}, "limit": 1000})
    stage = found.stages[1]
    assert stage.mixture == {
        "beside": {
            "labels": {"prefix": "sst2:", "answers": "label"},
            "scores": {"prefix": "stsb:", "answers": "number"},
        },
        "limit": 1000,
        "temperature": 1.0,
    }
    assert stage.datasets == ("own", "labels", "scores")
    assert {"own", "labels", "scores"} <= set(found.sources)
    assert found.origin("stages[1].mixture.temperature") == "default"
    assert found.origin("stages[1].mixture.limit") == "recipe"


def test_it_comes_back_as_it_was_written_and_is_in_the_key_only_where_there_is_one():
    said = {"beside": {"labels": "sst2:"}, "temperature": 2.0}
    found = resolved(said)
    assert as_recipe(found)["stages"][1]["mixture"] == said
    plain = resolved(None)
    assert "mixture" not in stage_spec(plain.stages[1])
    assert "mixture" not in as_recipe(plain)["stages"][1]
    specs = [
        stage_spec(resolved({"beside": {"labels": "sst2:"}, **changes}).stages[1])
        for changes in ({}, {"limit": 5}, {"temperature": 2.0}, {"beside": {"labels": "sst:"}})
    ]
    assert all(a != b for i, a in enumerate(specs) for b in specs[:i])


def test_what_is_no_dataset_beside_is_refused():
    assert "did you mean 'labels'?" in (told := fault({"beside": {"label": "sst2:"}}))
    assert "stages[1].mixture.beside.label: " in told
    told = fault({"beside": {"own": "again:"}})
    assert "stages[1].mixture.beside.own: it is the stage's own dataset" in told
    assert "'text' is a corpus" in fault({"beside": {"text": "text:"}})
    told = fault({"beside": {"tags": "ner:"}})
    assert "mixture.beside.tags: expected rows answered by label, number, text" in told
    assert "those of source tags are answered by spans" in told


def test_prefixes_have_to_tell_the_tasks_apart():
    told = fault({"beside": {"labels": "sst2:", "scores": " SST2:  "}})
    assert (
        "stages[1].mixture.beside.scores: expected a prefix of its own, got that of"
        " stages[1].mixture.beside.labels" in told
    )
    told = fault({"beside": {"labels": "translate:"}})
    assert "got that of stages[1].head.sequence_to_sequence.prefix" in told
    assert "mixture.beside.labels: expected a prefix that" in fault({"beside": {"labels": "  "}})
    told = fault({"beside": {"labels": "sst2:"}}, head={"sequence_to_sequence": {}})
    assert "stages[1].head.sequence_to_sequence.prefix: expected a prefix that" in told


def test_a_head_that_writes_no_texts_mixes_nothing():
    told = fault(
        {"beside": {"scores": "stsb:"}}, head={"sequence_classification": {}}, dataset="labels"
    )
    assert "stages[1].mixture: a mixture's answers are written as texts, expected head" in told
    assert "sequence_to_sequence, got sequence_classification" in told
    values = written(None)
    values["stages"][0] = {**GENERAL, "mixture": {"beside": {"labels": "sst2:"}}}
    with pytest.raises(RecipeError, match=r"stages\[0\]\.mixture: stage general has no 'mixture'"):
        resolve(Recipe.model_validate(values), SOURCES, folders=())


@pytest.mark.parametrize("said", ["limit=0", "temperature=0.5", "temperature=.inf", "beside={}"])
def test_settings_out_of_range_are_refused_by_name(said: str):
    key = said.partition("=")[0]
    with pytest.raises(RecipeError, match=rf"stages\[1\]\.mixture\.{key}"):
        load_recipe("papers/t5", [f"stages.finetune.mixture.{said}"])


def test_in_smoke_a_label_and_a_number_stand_for_all_tasks():
    beside = {"a": "a:", "smoke_number": "n:", "b": "b:", "c": "c:"}
    small = shrink(written({"beside": beside, "limit": 9}), "text")["stages"][1]["mixture"]
    assert small == {"beside": {"smoke_number": "n:", "smoke_labels": "a:"}, "limit": 9}
