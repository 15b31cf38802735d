"""The generated tables of docs/families.md agree with the parts themselves."""

from __future__ import annotations

import pytest

from fourstage.command.inventory import FILE, matrix, papers, written
from fourstage.recipe.loading import recipe_names
from models import catalogue


def test_the_tables_of_families_and_papers_are_current():
    page = FILE.read_text(encoding="utf-8")
    assert page == written(page), "regenerate them: python -m fourstage.command.inventory"


def test_every_objective_has_a_row_and_every_family_a_column():
    head, _, *rows = [line.strip("| ").split(" | ") for line in matrix().splitlines()]
    families = catalogue.names("families")
    assert head == [f"`{name}`" for name in families]
    assert [row[0] for row in rows] == [f"`{name}`" for name in catalogue.names("objectives")]
    cells = {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows}
    assert cells["`next_sentence`"]["`bert`"] == "yes"
    assert cells["`next_sentence`"]["`electra`"] == "no `pooled_output`"
    assert cells["`span_boundary`"]["`roberta`"] == "with `masked_lm`"


@pytest.mark.parametrize("name", [name for name in recipe_names([]) if name.startswith("papers/")])
def test_every_recipe_of_a_paper_names_its_paper(name):
    (row,) = (line for line in papers().splitlines() if f"(../recipes/{name}.yaml)" in line)
    assert "](https://" in row
    assert row.rsplit(" | ", 1)[1].strip("| ")
