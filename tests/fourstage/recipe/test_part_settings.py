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


def test_a_number_that_yaml_reads_as_text_is_told_as_of_any_other_key():
    share = Setting("rate", ("float",), 0.1)
    assert misfit(share, "1e-1").endswith("'1e-1'; YAML 1.1 reads 1e-1 as text: write 1.0e-1")
    count = Setting("num_layers", ("int",), 2)
    assert misfit(count, "1e1").endswith("'1e1'; YAML 1.1 reads 1e1 as text: write 10")
    assert misfit(count, "2").endswith("'2'; write the number without quotes")
    assert misfit(count, "two") == "expected a whole number, got the text 'two'"
    assert misfit(Setting("summary", ("str",), "mean"), 2) == "expected text, got the number 2"
