"""Cards that are too long for Prefect's database."""

from __future__ import annotations

from tasks.orchestration.posting import LONGEST, PICTURE, fitted
from tasks.reports.tables import markdown_table


def test_a_card_that_fits_stays_as_it_is():
    whole = "![loss](" + "x" * PICTURE + ")\n\n| a |"
    assert fitted(whole) == whole


def test_a_table_that_is_too_long_ends_with_a_whole_row_and_says_how_many_are_missing():
    rows = [(f"label {number}", "0.5000") for number in range(20_000)]
    table = markdown_table(("slice", "accuracy"), rows)
    assert len(table) > LONGEST
    *kept, blank, told = fitted(table).split("\n")
    assert kept == table.split("\n")[: len(kept)]
    missing = 2 + len(rows) - len(kept)
    assert len("\n".join(kept)) > LONGEST - 100
    told_so = f"*A card holds 190,000 characters. Left out: last lines {missing:,}.*"
    assert (blank, told) == ("", told_so)


def test_pictures_give_way_to_text_and_are_counted():
    picture = "![loss](" + "x" * 150_000 + ")"
    assert fitted("\n\n".join(["## Stages", picture, picture, "| a |"])) == (
        "## Stages\n\n\n\n| a |\n\n*A card holds 190,000 characters. Left out: pictures 2.*"
    )
