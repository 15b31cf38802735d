"""The page of a recipe's keys has all of them, with what the code allows and takes by default."""

from __future__ import annotations

from functools import cache

import pytest

from fourstage.command.recipe_reference import recipe_page
from fourstage.command.value_words import number_words, written
from fourstage.recipe.schema import Recipe

SCHEMA = Recipe.model_json_schema()


@cache
def sections() -> dict[str, list[dict[str, str]]]:
    """The rows of each section's first table, by heading."""
    found: dict[str, list[dict[str, str]]] = {}
    for part in recipe_page().split("\n#")[1:]:
        title = part.split("\n")[0].strip("# `")
        first = part.partition("\n| ")[2].partition("\n\n")[0].strip()
        if not first:
            continue
        head, _, *rows = [
            line.replace("\\|", "¦").strip("| ").split(" | ") for line in first.split("\n")
        ]
        assert all(len(row) == len(head) for row in rows), title
        found[title] = [dict(zip(head, row, strict=True)) for row in rows]
    return found


def row(section: str, key: str) -> dict[str, str]:
    return next(row for row in sections()[section] if row["key"] == f"`{key}`")


def test_every_mapping_has_a_section_with_all_its_keys():
    there = [[row["key"].strip("`") for row in rows] for rows in sections().values()]
    for name, mapping in {"Recipe": SCHEMA, **SCHEMA["$defs"]}.items():
        assert list(mapping["properties"]) in there, name
    assert len(there) == len(SCHEMA["$defs"]) + 1


@pytest.mark.parametrize(
    ("section", "key", "column", "expected"),
    [
        ("The recipe", "name", "default", "required"),
        ("The recipe", "seed", "default", "`17`"),
        ("The recipe", "stages", "values", "list of 1 to 20: mapping [`stages[]`](#stages)"),
        ("tokenizer", "vocabulary_size", "values", "whole number, 64 to 1,000,000"),
        ("tokenizer", "vocabulary_size", "default", "`8000`"),
        ("stages[]", "batch_size", "default", "general, domain, task `32`; finetune `16`"),
        ("stages[]", "sequence_length", "default", "`128`"),
        ("stages[]", "name", "default", "–"),
        ("stages[]", "corpora", "stages", "general, domain, task"),
        ("stages[]", "dataset", "stages", "finetune"),
        ("stages[]", "init", "stages", "general"),
        ("stages[]", "budget", "stages", "all"),
        ("stages[].budget", "steps", "default", "general `2000`; domain `1000`"),
        ("stages[].budget", "epochs", "default", "task `20.0`; finetune `3.0`"),
        ("stages[].stop", "metric", "default", "general, domain, task `heldout_loss`"),
        (
            "stages[].select",
            "split",
            "default",
            "general, domain, task `heldout`; finetune `dev`",
        ),
        ("stages[].optimizer.NAME", "warmup", "values", "number from 0, below 1"),
        ("evaluate", "metrics", "default", "–"),
        ("evaluate.few_shot.NAME", "separator", "default", '`"\\n\\n"`'),
        ("evaluate.prototypes.NAME", "ways", "values", "list of 1 to 20: whole number, 2 to 1,000"),
        ("search", "metric", "default", "–"),
        ("promote", "split", "default", "`dev`"),
        ("stages[].remedies", "layer_decay", "values", "number above 0, at most 1"),
    ],
)
def test_types_ranges_defaults_and_stages(section, key, column, expected):
    assert row(section, key)[column] == expected


def test_each_optimizer_has_a_column_with_its_own_defaults():
    table = recipe_page().partition("The defaults. ")[2].split("\n\n")[1]
    head, _, *rows = [line.strip("| ").split(" | ") for line in table.split("\n")]
    cells = {line[0]: dict(zip(head, line, strict=True)) for line in rows}
    assert cells["`warmup`"]["`adamw`"] == "general, domain, task `0.06`; finetune `0.1`"
    assert cells["`momentum`"]["`muon`"] == "`0.95`"
    assert cells["`momentum`"]["`adamw`"] == "–"
    assert cells["`ratio`"]["`sgd`"] == "`32.0`"


@pytest.mark.parametrize(
    ("whole", "range_", "expected"),
    [
        (True, {}, "whole number"),
        (True, {"exclusiveMinimum": 0, "maximum": 10**15}, "whole number from 1"),
        (True, {"minimum": 0, "exclusiveMaximum": 2**31}, "whole number, 0 to 2,147,483,647"),
        (False, {"minimum": 0, "maximum": 1}, "number, 0 to 1"),
        (False, {"exclusiveMinimum": 0.5, "exclusiveMaximum": 1}, "number above 0.5, below 1"),
        (False, {"minimum": 1, "maximum": 1e6}, "number, 1 to 1,000,000"),
    ],
)
def test_ranges_in_words(whole, range_, expected):
    assert number_words(whole, range_) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1e-6, "`1.0e-06`"), (True, "`true`"), ([], "–"), (["a", "b"], "`[a, b]`"), ("", "`''`")],
)
def test_values_are_written_as_a_recipe_has_them(value, expected):
    assert written(value) == expected
