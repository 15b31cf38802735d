"""A variant differs from its recipe in the settings that it names, and in nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.errors import RecipeError, UnknownNameError
from fourstage.recipe.resolved import ResolvedRecipe, stage_spec
from tasks.comparison.entries import entries_of
from tasks.planning.plan import plan_recipe

WHOLE = """
name: whole
family: bert
size: tiny
seeds: {values: [3, 4], from: general}
stages:
  - stage: general
    corpora: {python_scientific: 1.0}
    objectives: {masked_lm: {rate: 0.3}}
    sequence_length: 32
  - stage: domain
    corpora: {python_infrastructure: 1.0}
  - stage: finetune
    dataset: python_libraries
    head: {sequence_classification: {}}
evaluate: {forgetting_on: [python_scientific]}
"""


@pytest.fixture
def whole(tmp_path: Path, home: Path) -> str:
    path = tmp_path / "whole.yaml"
    path.write_text(WHOLE)
    return str(path)


def variant(recipe: str, *settings: str) -> tuple[ResolvedRecipe, ResolvedRecipe]:
    """The whole recipe and its variant ``v``."""
    entries = entries_of([recipe], variants=[f"v:{setting}" for setting in settings])
    assert [entry.name for entry in entries] == ["whole", "whole-v"]
    one, other = (plan_recipe(e.recipe, e.overrides, e.smoke).recipe for e in entries)
    return one, other


def specs(recipe: ResolvedRecipe) -> dict[str, dict]:
    return {stage.name: stage_spec(stage) for stage in recipe.stages}


def test_a_setting_changes_itself_alone(whole):
    one, other = variant(whole, "stages.domain.batch_size=4", "seed=9")
    assert other.seeds == (9,)
    changed = specs(one)
    changed["domain"]["phases"][0][2] = 4
    for spec in changed.values():
        spec["seed"] = 9
    assert specs(other) == changed


@pytest.mark.parametrize(
    ("left_out", "seeds_from", "measured"),
    [
        (["domain"], "general", ("python_scientific",)),
        (["general"], "domain", ("python_scientific",)),
        (["general", "domain"], "finetune", ()),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_without_a_stage_the_others_and_the_vocabulary_stay(whole, left_out, seeds_from, measured):
    one, other = variant(whole, *(f"stages.{name}=" for name in left_out))
    kept = {name: spec for name, spec in specs(one).items() if name not in left_out}
    assert specs(other) == kept
    assert {name for name in kept if "objectives" in kept[name]} == {"general", "domain"} - set(
        left_out
    )
    assert other.tokenizer == one.tokenizer
    assert set(one.tokenizer.learn_from) == {"python_scientific", "python_infrastructure"}
    assert other.seeds == one.seeds
    assert other.seeds_from == seeds_from
    assert other.forgetting_on == measured


def test_without_pre_training_nothing_is_asked_of_it_and_otherwise_all_is(whole):
    asked = (
        "promote={model: m, require: {forgetting: {at_most: 0.5}, accuracy: {at_least: 0.1}}}",
        "evaluate.prototypes={python_libraries: {}}",
    )
    gone = "v:stages.general=", "v:stages.domain="
    for variants, left in (
        (gone, ()),
        (gone[:1], ("forgetting",)),
        (["v:seed=1"], ("forgetting",)),
    ):
        _, entry = entries_of([whole], overrides=asked, variants=variants)
        other = plan_recipe(entry.recipe, entry.overrides, entry.smoke).recipe
        assert tuple(other.require) == (*left, "accuracy")
        assert bool(other.prototypes) is bool(left)
    labels = ["stages.general=", "stages.domain=", "seeds.from=finetune"]
    alone = entries_of([whole], overrides=labels, variants=["v:seed=1"])
    recipes = [plan_recipe(e.recipe, e.overrides, e.smoke).recipe for e in alone]
    assert [each.forgetting_on for each in recipes] == [("python_scientific",)] * 2


def test_recipes_without_a_metric_in_common_are_refused(whole, home):
    with pytest.raises(RecipeError, match="a metric that all recipes have, got whole: accuracy, "):
        entries_of([whole], variants=["v:evaluate.metrics=[micro_f1]"])
    assert not (home / "store").exists()


@pytest.mark.parametrize("nothing", ["", "null", " ~  # none"])
def test_nothing_can_be_written_in_more_ways(whole, nothing):
    one, other = variant(whole, f"stages.domain={nothing}")
    assert specs(other) == {n: spec for n, spec in specs(one).items() if n != "domain"}
    assert other.tokenizer == one.tokenizer


def test_objectives_are_inherited_as_they_are_from_a_stage_that_is_left_out(whole):
    """Whether they take turns, too; and a small number is not written as JSON, a text in YAML."""
    path = Path(whole)
    objectives = "objectives: {masked_lm: {rate: 1.0e-5}, capitalization: {weight: 2}}"
    path.write_text(WHOLE.replace("objectives: {masked_lm: {rate: 0.3}}", objectives))
    for turns in ("true", "false"):
        settings = [f"stages.general.alternate={turns}"]
        entries = entries_of([whole], settings, variants=["v:stages.general="])
        one, other = (plan_recipe(e.recipe, e.overrides, e.smoke).recipe for e in entries)
        assert one.stages[1].alternate is (turns == "true")
        assert specs(other) == {n: spec for n, spec in specs(one).items() if n != "general"}


def test_a_variant_may_choose_what_would_be_kept(whole):
    _, other = variant(whole, "stages.general=", "tokenizer.learn_from=[python_infrastructure]")
    assert other.tokenizer.learn_from == ("python_infrastructure",)


def test_every_recipe_is_followed_by_its_variants(whole, tmp_path):
    second = tmp_path / "second.yaml"
    second.write_text(WHOLE.replace("whole", "second"))
    entries = entries_of(
        [whole, str(second)], variants=["a:stages.domain=", "b:seed=1", "a:seed=2"]
    )
    names = [f"{recipe}{end}" for recipe in ("whole", "second") for end in ("", "-a", "-b")]
    assert [entry.name for entry in entries] == names
    assert entries[1].overrides[-2:] == ("stages.domain=", "seed=2")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("no-domain", "expected NAME:PATH=VALUE"),
        ("a:stages.domain", "expected NAME:PATH=VALUE"),
        ("No Domain:seed=1", "expected NAME:PATH=VALUE"),
        ("a:stages.domian=", "'domian' is not the name of a stage"),
        ("a:stages[1]=", "a:stages.1.=: expected the name of the stage that is left out, as in"),
    ],
)
def test_a_mistake_is_refused_before_any_work(whole, home, given, told):
    with pytest.raises(RecipeError, match=told):
        entries_of([whole], variants=[given])
    assert not (home / "store").exists()


def test_recipes_of_which_none_answers_rows_are_refused(whole, home):
    with pytest.raises(RecipeError, match="whole, whole-a: compare needs a stage finetune"):
        entries_of([whole], overrides=["stages.finetune="], variants=["a:seed=1"])
    assert not (home / "store").exists()


def test_a_stage_that_is_accepted_is_one_of_each_participant_that_has_it(whole: str) -> None:
    variants = ["no-domain:stages.domain="]
    both = entries_of([whole], variants=variants, accepted=["domain", "general"])
    assert [entry.accepted for entry in both] == [("domain", "general"), ("general",)]
    with pytest.raises(UnknownNameError, match="'genral' is not a stage of a recipe; did you mean"):
        entries_of([whole], accepted=["genral"])
