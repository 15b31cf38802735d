"""Types of a part's settings."""

from __future__ import annotations

import pytest

from fourstage.recipe.part_settings import misfit
from models.signatures import Setting

WHOLE = Setting("groups", ("Sequence", "int"), [8, 8])
NESTED = Setting("filters", ("list", "list", "int"), None)
OPTIONAL = Setting("discounts", ("Sequence", "float", "None"), None)


@pytest.mark.parametrize("setting", [WHOLE, NESTED, OPTIONAL])
def test_a_list_of_numbers_is_no_number(setting):
    assert misfit(setting, 8) == "expected a list, got the number 8"
    assert misfit(setting, [[1, 2]]) == ""
