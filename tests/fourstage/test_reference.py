"""The reference of the command is the one that its parser gives."""

from __future__ import annotations

from fourstage.command.parser import command_parser
from fourstage.command.reference import FILE, reference


def test_the_checked_in_reference_is_current():
    assert FILE.read_text(encoding="utf-8") == reference(), (
        "write it anew: python -m fourstage.command.reference"
    )


def test_every_verb_has_a_section():
    _, verbs = command_parser()
    page = reference()
    for name in verbs.choices:
        assert f"## `fourstage {name}`" in page
