"""Defaults of keys, as resolving gives them, against the constants of each place."""

from __future__ import annotations

import pytest

from fourstage.recipe import defaults, few_shot, gate_rules, mixture, prototypes, tuning
from fourstage.recipe.key_defaults import DEPENDS, EXAMPLES, SOURCES, defaults_by_key
from fourstage.recipe.resolution import resolve
from fourstage.recipe.resolved import _leaves, as_recipe
from fourstage.recipe.schema import Recipe

FOUND = defaults_by_key(Recipe.model_json_schema())


def of(mapping: str, kind: str | None) -> dict[str, object]:
    """The defaults of a mapping's keys in one kind of stage."""
    return {key: by[kind] for (name, key), by in FOUND.items() if name == mapping and kind in by}


@pytest.mark.parametrize(
    ("mapping", "kind", "expected"),
    [
        ("LowRank", "finetune", tuning.LORA),
        ("FeatureBased", "finetune", tuning.FEATURE_BASED),
        ("Average", "finetune", tuning.AVERAGE),
        ("RDrop", "finetune", tuning.REGULARISERS["r_drop"]),
        ("Fgm", "finetune", tuning.REGULARISERS["fgm"]),
        ("Mixture", "finetune", {"temperature": mixture.DEFAULTS["temperature"]}),
        ("Prototypes", None, prototypes.DEFAULTS),
        ("NonInferiority", "finetune", {}),
        ("NonInferiority", None, gate_rules.TEST),
        ("NotAbove", None, gate_rules.TEST),
    ],
)
def test_every_setting_of_a_mapping_is_found(mapping, kind, expected):
    assert of(mapping, kind) == expected


def test_the_settings_of_every_score_of_a_prompt_are_found():
    found = of("FewShot", None)
    for settings in (few_shot.DEFAULTS, few_shot.OF_LABELS, *few_shot.OF_SCORES.values()):
        assert settings.items() <= found.items()


@pytest.mark.parametrize("kind", defaults.STAGES)
def test_stages_have_the_defaults_of_their_kind(kind):
    found, stage = of("Stage", kind), defaults.STAGES[kind]
    assert found["batch_size"] == stage.batch_size
    assert found["refresh"] == stage.refresh
    assert found["sequence_length"] == defaults.SEQUENCE_LENGTH
    unit, amount = stage.budget
    assert of("WrittenBudget", kind) == {unit: amount}


def test_what_depends_on_the_rest_of_a_recipe_has_no_default():
    for key in ("metric", "seeds"):
        assert FOUND["Search", key][None] is DEPENDS
    assert FOUND["Evaluate", "metrics"][None] is DEPENDS
    assert FOUND["Stop", "metric"] == {
        **dict.fromkeys(("general", "domain", "task"), "heldout_loss"),
        "finetune": DEPENDS,
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_value_that_is_not_written_does_not_come_from_the_recipe(example):
    resolved = resolve(Recipe.model_validate(example), SOURCES, folders=())
    written = dict(_leaves({**example, "stages": list(example["stages"])}, ""))
    for path, value, origin in resolved.rows():
        assert (path in written and value not in ([], {})) == (origin == "recipe"), path


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_default_that_is_written_down_changes_nothing(example):
    full = as_recipe(resolve(Recipe.model_validate(example), SOURCES, folders=()))
    again = as_recipe(resolve(Recipe.model_validate(full), SOURCES, folders=()))
    assert again == full
