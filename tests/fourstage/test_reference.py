"""The pages of reference are those that the code gives."""

from __future__ import annotations

import pytest

from fourstage.command.parser import command_parser
from fourstage.command.reference import PAGES, reference


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_the_checked_in_pages_are_current(file):
    assert file.read_text(encoding="utf-8") == PAGES[file](), (
        "write them anew: python -m fourstage.command.reference"
    )


def test_every_verb_has_a_section():
    _, verbs = command_parser()
    page = reference()
    for name in verbs.choices:
        assert f"## `fourstage {name}`" in page
