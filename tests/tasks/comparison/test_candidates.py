"""Which candidates a choice tries of a recipe; nothing is trained here."""

from __future__ import annotations

from typing import Any

import pytest

from fourstage.errors import RecipeError, UnknownNameError
from tasks.comparison.candidates import candidates_of
from tasks.planning.plan import plan_recipe


def names(**more: Any) -> list[str]:
    return [each.name for each in candidates_of("quickstart", **more)]


def test_a_recipe_is_tried_as_written_in_parts_and_larger() -> None:
    parts = ["labels-only", "no-general", "no-domain", "no-task"]
    counted = ["counting", "no-wide", "fasttext"]
    assert names() == ["as-written", *parts, *counted, "larger"]
    assert names(smoke=True) == ["as-written", *parts, *counted]
    fast = "fast:stages.finetune.batch_size=8"
    assert names(without=["larger", "no-task"], more=[fast]) == [
        *("as-written", *parts[:3], *counted, "fast")
    ]


def test_what_counts_has_no_network_or_stands_beside_it() -> None:
    plain = ["stages.finetune.head={sequence_classification: {}}"]
    found = {each.name: each for each in candidates_of("quickstart", plain)}
    assert "no-wide" not in found
    made = {
        name: plan_recipe("quickstart", found[name].overrides).recipe
        for name in ("counting", "wide", "wide-labels-only")
    }
    assert {recipe.family for recipe in made.values()} == {"tfidf", "roformer"}
    assert [len(recipe.stages) for recipe in made.values()] == [1, 4, 1]
    for recipe in made.values():
        assert recipe.finetune is not None
        assert recipe.finetune.head_settings["wide"] is True
        assert recipe.finetune.select is not None


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("evaluate.metrics=[macro_f1, accuracy]", "has as the first metric macro_f1 and"),
        ("stages.finetune.dataset=smoke_labels", "has the dataset smoke_labels and quickstart"),
        ("evaluate.split=dev", "has as evaluate.split dev and quickstart test"),
        ("search.grid={batch_size: [8, 16]}", "has a search"),
    ],
)
def test_a_candidate_whose_score_is_of_something_else_is_refused(setting: str, said: str) -> None:
    with pytest.raises(RecipeError, match=f"choose: other {said}"):
        candidates_of("quickstart", more=[f"other:{setting}"])
    if "search" not in setting:
        other = "other:stages.finetune.batch_size=8"
        assert names(more=[other], overrides=[setting])[-1] == "other", "it is all of them"


@pytest.mark.parametrize("metric", ["perplexity", "perplexity_a_word"])
def test_a_perplexity_chooses_among_what_reads_the_same_targets(metric: str) -> None:
    recipe, given = "tasks/multi30k-en-de", [f"evaluate.metrics=[{metric}]"]
    longer = "longer:stages.finetune.head.sequence_to_sequence.target_length=60"
    with pytest.raises(RecipeError, match="longer reads up to 60 tokens of a target and multi30k"):
        candidates_of(recipe, given, more=[longer])
    fewer = "fewer:tokenizer.vocabulary_size=2000"
    if metric == "perplexity":
        with pytest.raises(RecipeError, match="fewer has other tokens than multi30k"):
            candidates_of(recipe, given, more=[fewer])
        given = ["evaluate.metrics=[chrf, perplexity]"]
    assert "fewer" in [each.name for each in candidates_of(recipe, given, more=[fewer])]


def test_fasttext_reads_the_labels_alone_with_settings_of_its_own() -> None:
    given = [
        "stages.finetune.head={sequence_classification: {class_weights: balanced, wide: true}}",
    ]
    (found,) = [each for each in candidates_of("quickstart", given) if each.name == "fasttext"]
    made = plan_recipe("quickstart", found.overrides).recipe
    assert (made.family, len(made.stages)) == ("fasttext", 1)
    assert (made.tokenizer.scheme, made.tokenizer.minimum_count) == ("word", 1)
    stage, paper = made.finetune, plan_recipe("papers/fasttext-classifier").recipe.finetune
    assert stage is not None
    assert paper is not None
    assert (stage.optimizer, stage.network) == (paper.optimizer, paper.network)
    wanted = {**paper.head_settings, "class_weights": "balanced"}
    assert stage.head_settings == wanted


def test_every_usual_candidate_that_is_missing_has_a_reason() -> None:
    head = "stages.finetune.head={sequence_classification: {}}"
    for said, missing in {
        "r_drop={alpha: 1.0}": {"fasttext": "r_drop of the stage finetune is for its own network"},
        "fgm={epsilon: 0.5}": {"fasttext": "fgm of the stage finetune is for its own network"},
        "feature_based={hidden_dim: 8, num_layers: 1}": dict.fromkeys(
            ("wide", "wide-labels-only", "fasttext"), "feature_based of the stage"
        ),
    }.items():
        told: dict[str, str] = {}
        given = [head, f"stages.finetune.{said}"]
        found = candidates_of("quickstart", given, unmade=told.__setitem__)
        assert set(told) >= set(missing), said
        assert set(told).isdisjoint(each.name for each in found)
        for name, why in missing.items():
            assert why in told[name]
            # Leaving out what can't be made is no error, and then it is not told.
            again: dict[str, str] = {}
            candidates_of("quickstart", given, without=[name], unmade=again.__setitem__)
            assert again.keys() == told.keys() - {name}
    told = {}
    names(smoke=True, unmade=told.__setitem__)
    assert told == {"larger": "a quick trial has the smallest size"}
    names(without=["wide"])  # the recipe has the counted n-grams already


def test_counting_leaves_out_what_is_about_the_network() -> None:
    given = ["stages.finetune.fgm={}", "stages.finetune.lora={}"]
    (found,) = [each for each in candidates_of("quickstart", given) if each.name == "counting"]
    stage = plan_recipe("quickstart", found.overrides).recipe.finetune
    assert stage is not None
    assert (stage.family, stage.fgm, stage.lora) == ("tfidf", None, None)


def test_the_larger_network_has_twice_the_width_and_half_the_rates() -> None:
    found = {each.name: each for each in candidates_of("quickstart")}
    whole = plan_recipe("quickstart").recipe
    larger = plan_recipe("quickstart", found["larger"].overrides).recipe
    assert larger.network["hidden_dim"] == 2 * whole.network["hidden_dim"]
    assert larger.network["num_layers"] == 2 * whole.network["num_layers"]
    for one, other in zip(larger.stages, whole.stages, strict=True):
        rates = [stage.optimizer.settings["peak_learning_rate"] for stage in (one, other)]
        assert rates[0] == rates[1] / 2
        assert one.corpora == other.corpora


def test_a_usual_candidate_that_this_recipe_does_not_allow_is_left_out_and_told() -> None:
    whys = {
        "objectives={masked_lm: {}}": {
            "fasttext": "objectives of the stage finetune is for its own network",
        },
        "freeze=[embeddings/*]": {
            "fasttext": "freeze of the stage finetune is for its own network",
            "labels-only": "starts from random",
        },
    }
    for setting, why in whys.items():
        told: dict[str, str] = {}
        given = [f"stages.finetune.{setting}"]
        found = [each.name for each in candidates_of("quickstart", given, unmade=told.__setitem__)]
        assert found == [name for name in names() if name not in why]
        assert list(told) == list(why)
        for name, said in why.items():
            assert said in told.pop(name)
        candidates_of("quickstart", given, unmade=told.__setitem__, without=list(why))
        assert not told, "who leaves it out knows"
        with pytest.raises(RecipeError):
            candidates_of("quickstart", given, more=["yours:family=tfidf"])


def test_counting_needs_no_teacher_and_the_larger_network_keeps_what_is_unset() -> None:
    assert {"counting", "fasttext"} <= {each.name for each in candidates_of("papers/distilbert")}
    assert "larger" in [each.name for each in candidates_of("papers/xlnet")]  # settings None and 0


def test_what_cannot_be_chosen_among_is_refused_before_any_work() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'larger'"):
        names(without=["largr"])
    with pytest.raises(RecipeError, match="needs a stage finetune"):
        candidates_of("papers/gpt3-few-shot")
    with pytest.raises(RecipeError, match="peak_learning_rate"):
        names(more=["fast:stages.task.optimizer.adamw.peak_learning_rate=quick"])
    with pytest.raises(RecipeError, match="--candidate Fast:seed=3: expected NAME"):
        names(more=["Fast:seed=3"])
    with pytest.raises(RecipeError, match="--candidate as-written: the recipe as it is has this"):
        names(more=["as-written:stages.finetune.batch_size=8"])
    for seed in ("seed=3", "seeds.values=[1]"):
        with pytest.raises(RecipeError, match=r"other: .* at the same seeds"):
            names(more=[f"other:{seed}"])
    with pytest.raises(RecipeError, match="every candidate is left out"):
        names(without=names())
