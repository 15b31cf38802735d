"""The page of parts has every setting, with the values that a plan takes."""

from __future__ import annotations

import re
from functools import cache

import pytest

from fourstage.command.part_reference import ONE, part_page, values
from fourstage.recipe.part_settings import misfit
from models import catalogue
from models.signatures import Setting, settings_of

PARTS = [(kind, name) for kind in ONE for name in catalogue.names(kind)]
NUMBERS = (-1, -0.5, 0, 0.5, 1, 1.5, 2)


def settings(kind: str, name: str) -> dict[str, Setting]:
    return settings_of(catalogue.file_of(kind, name))


@cache
def sections() -> dict[str, str]:
    return {part.split("\n")[0]: part for part in part_page().split("\n### ")[1:]}


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_every_setting_has_a_row_with_its_meaning(kind, name):
    rows = dict(
        re.findall(r"^\| `(\w+)` \|.* \| (.+) \|$", sections()[f"{ONE[kind]} `{name}`"], re.M)
    )
    for setting in settings(kind, name):
        assert rows[setting].strip(" –"), setting


def in_words(words: str, value: float) -> bool:
    """Whether a number has the type and the range that words give."""
    for option in words.split("; or "):
        if not (said := re.fullmatch(r"(whole )?number,? ?(.*)", option)):
            continue
        if said[1] and value != int(value):
            continue
        bounds = {
            "from": lambda end: value >= end,
            "above": lambda end: value > end,
            "below": lambda end: value < end,
            "to": lambda end: value <= end,
        }
        ends = re.sub(r"^(\d)", r"from \1", said[2])
        return all(bounds[word](float(end)) for word, end in re.findall(r"(\w+) (\d+)", ends))
    return False


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_the_range_is_the_one_that_a_plan_checks(kind, name):
    for setting in settings(kind, name).values():
        if not {"int", "float"} & {*setting.types}:
            continue
        for value in NUMBERS:
            number = int(value) if value == int(value) else value
            if number != setting.default:
                assert in_words(values(setting), number) == (misfit(setting, number) == ""), (
                    setting,
                    number,
                )


def test_a_setting_a_size_and_the_metrics_of_a_head():
    bert, head = sections()["Family `bert`"], sections()["Head `multi_label_classification`"]
    assert (
        "| `max_sequence_length` | whole number from 1 | `512` | Longest text in tokens. |" in bert
    )
    assert "| `num_layers` | whole number from 1 | required |" in bert
    assert (
        "| `tiny` | num_layers: 2, hidden_dim: 128, num_heads: 2, intermediate_dim: 512 |" in bert
    )
    assert "Answers: `label_set`. Metrics: `micro_f1`, `macro_f1`, `exact_match`." in head
    assert "| `threshold` | number above 0, below 1; or `dev` | `0.5` |" in head
