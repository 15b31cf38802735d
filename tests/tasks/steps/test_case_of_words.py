"""Text is tokenised with the case of its words where an objective asks for it, and only there."""

from __future__ import annotations

import json
from typing import Any

from tasks.planning.plan import plan_recipe

CASED = "stages[0].objectives={masked_lm: {}, capitalization: {}}"


def tokens_of(overrides: list[str]) -> dict[str, Any]:
    steps = plan_recipe("quickstart", overrides, smoke=True).of_kind("tokens", "rows")
    return {step.name: step.settings for step in steps}


def test_case_is_in_the_settings_of_tokens_where_an_objective_asks_for_it():
    plain, cased = tokens_of([]), tokens_of([CASED])
    assert plain.keys() == cased.keys()
    assert "case" not in json.dumps(plain), "keys of recipes that do not ask stay as they were"
    assert cased == {name: settings | {"case": True} for name, settings in plain.items()}
