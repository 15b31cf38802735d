"""Recipes that train on captions: which stages may read a dataset with pictures."""

from __future__ import annotations

from typing import Any

import pytest

from fourstage.errors import RecipeError
from fourstage.recipe.ledger import SourceFacts
from fourstage.recipe.loading import load_recipe
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import ResolvedRecipe
from fourstage.recipe.schema import Recipe

SOURCES = {
    "text": SourceFacts(labelled=False),
    "rows": SourceFacts(labelled=True),
    "captions": SourceFacts(labelled=True, region_dim=39),
    "questions": SourceFacts(labelled=True, region_dim=39, asks=True),
    "detected": SourceFacts(labelled=True, region_dim=2048),
    "told": SourceFacts(labelled=True, region_dim=39, detected=True, classes=(1600, 400)),
    "objects": SourceFacts(labelled=True, region_dim=39, detected=True, classes=(1600,)),
}


def resolved(corpora: dict[str, float], objectives: dict[str, Any], **more: Any) -> ResolvedRecipe:
    stage = {"stage": "general", "corpora": corpora, "objectives": objectives}
    said = {"name": "seeing", "family": "uniter", "size": "tiny", "tokenizer": {}} | more
    return resolve(Recipe.model_validate({**said, "stages": [stage]}), SOURCES, folders=())


def small_of(name: str, *overrides: str) -> ResolvedRecipe:
    """The smoke version of a recipe of ours, whose sources of NLVR have pictures."""
    pictured = ("nlvr", "nlvr_captions", "nlvr_descriptions")
    return resolve(load_recipe(name, overrides, smoke=True, pictured=pictured.__contains__))


def test_a_network_that_sees_reads_captions_and_text_before_any_task():
    found = resolved({"captions": 3.0, "text": 1.0}, {"masked_lm": {}, "region_class": {}})
    assert found.stages[0].corpora == {"captions": 0.75, "text": 0.25}
    assert found.notes == ()


def test_the_case_of_words_may_be_learned_from_text_beside_captions():
    (stage,) = resolved({"captions": 1.0, "text": 1.0}, {"capitalization": {}}).stages
    assert stage.objectives == {"capitalization": {}}


@pytest.mark.parametrize(
    ("corpora", "objectives", "more", "told"),
    [
        ({"rows": 1.0}, {"masked_lm": {}}, {}, "'rows' is a dataset"),
        ({"captions": 1.0}, {"masked_lm": {}}, {"family": "bert"}, "'captions' is a dataset"),
        (
            {"text": 1.0},
            {"region_regression": {}},
            {},
            r"objectives.region_regression: it predicts something of pictures, but no source of",
        ),
        (
            {"detected": 1.0},
            {"masked_lm": {}},
            {},
            r"stages\[0\].corpora: expected regions of 39 .* detected, whose regions have 2048",
        ),
        (
            {"captions": 1.0, "text": 1.0},
            {"image_text_match": {}, "masked_lm": {}},
            {},
            r"objectives.image_text_match: it chooses a picture for each text, but text has none",
        ),
        (
            {"captions": 1.0, "text": 1.0},
            {"masked_lm": {}, "image_question_answering": {}},
            {},
            r"objectives.image_question_answering: it asks questions about pictures, but no source"
            r".* has answers",
        ),
        (
            {"captions": 1.0, "questions": 1.0},
            {"image_text_match": {"captions": 2}},
            {},
            r"image_text_match: its rows have two captions .* a text of questions may be",
        ),
        (
            {"captions": 1.0, "questions": 1.0},
            {"masked_lm": {}, "capitalization": {}},
            {},
            r"stages\[0\].objectives.capitalization: it reads the case of words, which captions",
        ),
        ({"captions": 1.0}, {"word_region_alignment": {}}, {}, "needs matched_pairs"),
        (
            {"told": 1.0, "captions": 1.0},
            {"region_class": {"detected": [1600, 400]}},
            {},
            r"region_class.detected: it learns \[1600, 400\] .* pictures of captions have none",
        ),
        (
            {"objects": 1.0},
            {"region_class": {"detected": [1600, 400]}},
            {},
            "pictures of objects have 1600 object classes; give",
        ),
        (
            {"objects": 1.0},
            {"region_class": {"detected": 1600}},
            {},
            "it learns 1600 classes, .* pictures of objects have 1600 object classes; give",
        ),
        (
            {"told": 1.0},
            {"region_class": {"detected": [1600, 500]}},
            {},
            "pictures of told have 1600 object classes and 400 attributes",
        ),
        ({"text": 1.0}, {"image_text_match": {}}, {"family": "bert"}, "needs regions"),
    ],
)
def test_what_cannot_see_or_has_nothing_to_see_is_refused(corpora, objectives, more, told):
    with pytest.raises(RecipeError, match=told):
        resolved(corpora, objectives, **more)


def test_classes_of_a_detector_are_learned_and_drawn_pictures_have_their_own():
    learned = {"region_class": {"detected": [1600, 400]}}
    (stage,) = resolved({"told": 1.0, "text": 1.0}, learned).stages
    assert stage.objectives["region_class"]["detected"] == [1600, 400]
    objects = {"region_class": {"detected": [1600]}}
    assert resolved({"told": 1.0, "objects": 1.0}, objects).stages
    said = "stages.general.objectives.region_class.detected=[1600, 400]"
    small = small_of("papers/lxmert", said)
    assert not small.stages[0].objectives["region_class"]["detected"]


def test_questions_may_be_asked_beside_captions_and_text_or_by_turns():
    mixed = {"captions": 1.0, "questions": 2.0, "text": 1.0}
    asked = {"masked_lm": {}, "image_question_answering": {"answers": 100}}
    (stage,) = resolved(mixed, asked).stages
    assert stage.objectives["image_question_answering"] == {"answers": 100}
    assert resolved(mixed, asked).measured_by == "masked_lm"
    alone = resolved({"questions": 1.0}, {"image_question_answering": {}})
    assert alone.stages[0].objectives == {"image_question_answering": {"answers": 9500}}
    assert alone.measured_by == "image_question_answering"


def test_the_sources_say_which_of_their_rows_are_questions():
    from data_contracts.sources import load_source
    from tasks.planning.plan import asks

    names = ("nlvr", "nlvr_captions", "nlvr_descriptions", "sst2")
    found = {name: asks(load_source(name)) for name in names}
    assert found == dict.fromkeys(names, False) | {"nlvr": True}
    assert asks(load_source("smoke_pictures"))
    assert not asks(load_source("smoke_captions"))


def test_the_smoke_version_asks_of_drawn_pictures():
    small = small_of("papers/lxmert")
    assert small.stages[0].corpora == {"smoke_pictures": 1.0}
    assert small.stages[0].objectives["image_question_answering"] == {"answers": 9500}


def test_the_smoke_version_keeps_pictures_beside_text_alone():
    small = small_of("papers/vl-bert")
    general, finetune = small.stages
    assert general.corpora == {"smoke_captions": 0.5, "smoke_general": 0.5}
    assert finetune.dataset == "smoke_pictures"
    paired, task, _ = small_of("papers/visualbert").stages
    assert paired.objectives["image_text_match"]["captions"] == 2
    assert paired.corpora == {"smoke_captions": 1.0}
    assert task.corpora == {"smoke_pictures": 1.0}
    smoke = small_of("tasks/nlvr", "family=bert")
    assert smoke.stages[-1].dataset == "smoke_labels"


def test_objectives_of_uniter_take_turns_and_alignment_goes_with_the_match():
    from models.catalogue import turns

    general = small_of("papers/uniter").stages[0]
    groups = turns(list(general.objectives))
    together = ("image_text_match", "word_region_alignment")
    assert groups.pop("image_text_match") == together
    assert all(group == (leader,) for leader, group in groups.items())
    shares = {name: general.weights[name] for name in ("image_text_match", *groups)}
    assert shares == {
        "image_text_match": 2,
        "masked_lm": 2,
        "region_regression": 1,
        "region_class": 1,
    }


def test_losses_of_lxmerts_regions_weigh_as_much_as_the_authors():
    general = small_of("papers/lxmert").stages[0]
    for name in ("region_regression", "region_class"):
        # Theirs: 1 / 0.15 times the mean over all regions, 0 where none is hidden. Ours: the mean
        # over those that are hidden.
        rate = general.objectives[name]["rate"]
        assert general.weights[name] == pytest.approx(rate / 0.15)
