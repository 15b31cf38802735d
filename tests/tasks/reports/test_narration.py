"""A step's line says what a person has to know next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.reports.narration import tell_step
from tasks.store.artifacts import Artifact


def _line(capsys, name: str, **facts: object) -> str:
    kind = name.split()[0]
    tell_step(Artifact(kind, "", Path(), {}, facts, "", name, {}, {}, {}, ""), "made", 0.1)
    return capsys.readouterr().err


@pytest.mark.parametrize("verdict", ["green", "amber", "red"])
def test_a_contract_that_is_not_green_names_its_report(capsys, verdict: str):
    facts = {"verdict": verdict, "reason": "So it is.", "rows": 401, "quarantined": 1}
    line = _line(capsys, "contract tokens notes", **facts)
    assert ("fourstage report 'tokens notes'" in line) == (verdict != "green")
    assert ("green, 1 of 401 rows quarantined" in line) == (verdict == "green")


@pytest.mark.parametrize("heldout", [0, 1])
def test_a_corpus_says_at_once_that_nothing_can_be_measured_on_it(capsys, heldout: int):
    counts = {"read": 9, "kept": 9, "quarantined": {}, "removed": {}}
    counts["splits"] = {"train": 9 - heldout, "heldout": heldout}
    assert ("can't be measured" in _line(capsys, "corpus notes", counts=counts)) == (not heldout)
