"""A step's line says what a person has to know next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.reports.narration import LONGEST, _tell_pairs, tell_step
from tasks.store.artifacts import Artifact


def _line(capsys, name: str, notes: dict | None = None, **facts: object) -> str:
    kind = name.split()[0]
    tell_step(Artifact(kind, "", Path(), {}, facts, "", name, notes or {}, {}, {}, ""), "made", 0.1)
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


def test_mended_answers_and_truncated_rows_are_counted(capsys):
    counts = {"read": 9, "kept": 8, "quarantined": {"no label": 1}, "removed": {}}
    counts["splits"] = {"dev": 1}
    assert "mended" not in _line(capsys, "dataset notes", counts=counts)
    counts["mended"] = {"answer moved": {"count": 3, "first_ids": ["a"]}}
    line = _line(capsys, "dataset notes", counts=counts)
    assert "8 of 9 rows kept (1 no label); mended: 3 answer moved" in line
    notes = {"tokens_per_second": 9.0, "metrics": {}}
    assert "truncated" not in _line(capsys, "stage finetune", notes, steps=5)
    notes["metrics"] = {"cut": {"row": {"count": 1200, "longest": 340}}}
    line = _line(capsys, "stage finetune", notes, steps=5)
    assert "1,200 training rows truncated (the longest has 340 tokens)" in line


def test_triples_with_unknown_names_are_counted(capsys):
    scores = {"mean_rank": 29.0, "mrr": 0.1, "hits_at_1": 0.0, "hits_at_3": 0.1, "hits_at_10": 0.2}
    line = _line(capsys, "links graph", metrics=scores, unknown=0)
    assert "mean rank 29" in line
    assert "without" not in line
    line = _line(capsys, "links graph", metrics=scores, unknown=1200)
    assert "1,200 have names without a vector and count as the last" in line
    notes = {"tokens_per_second": 9.0, "metrics": {"triples_with_unknown_names": 0}}
    assert "triples" not in _line(capsys, "stage general", notes, steps=5)
    notes["metrics"]["triples_with_unknown_names"] = 7
    line = _line(capsys, "stage general", notes, steps=5)
    assert "7 triples with names outside of the vocabulary left out" in line


def test_a_stage_says_how_much_its_network_and_the_n_grams_beside_it_count(capsys):
    notes = {"tokens_per_second": 9.0, "metrics": {"blend": {"network": 0.254, "counted": 1.0}}}
    line = _line(capsys, "stage finetune", notes, steps=5)
    assert "9 tokens/s, answers by 0.25 network + 1.00 n-grams" in line


def test_tokens_say_how_many_of_the_names_in_them_are_linked(capsys):
    tokens = {"train": 20, "heldout": 4}
    assert "names" not in _line(capsys, "tokens notes", tokens=tokens)
    line = _line(capsys, "tokens notes", tokens=tokens, names={"found": 8, "linked": 6})
    assert "24 tokens, 6 of 8 names linked (75%)" in line


def test_tokens_say_which_spans_no_tags_can_say(capsys):
    tokens = {"train": 20, "heldout": 4}
    none = {"count": 0, "first_ids": []}
    assert "within" not in _line(capsys, "tokens notes", tokens=tokens, spans_within_words=none)
    some = {"count": 3, "first_ids": ["a", "b"]}
    line = _line(capsys, "tokens notes", tokens=tokens, spans_within_words=some)
    assert "; 3 spans begin or end within a word, where no tag does (first rows a, b)" in line


@pytest.mark.parametrize("dev", [0, 1])
def test_a_dataset_says_at_once_that_it_has_no_dev_rows(capsys, dev: int):
    counts = {"read": 9, "kept": 9, "quarantined": {}, "removed": {}, "splits": {"dev": dev}}
    assert ("no dev rows" in _line(capsys, "dataset notes", counts=counts)) == (not dev)


def test_pictures_of_a_dataset_are_counted(capsys):
    counts = {"read": 9, "kept": 9, "quarantined": {}, "removed": {}, "splits": {"dev": 1}}
    assert "pictures" not in _line(capsys, "dataset notes", counts=counts)
    told = {"read": 1200, "regions": 2400, "with_more_regions": 0, "without_regions": {}}
    assert "kept; pictures: 1,200 read\n" in _line(
        capsys, "dataset notes", counts=counts | {"pictures": told}
    )
    told |= {"with_more_regions": 7, "without_regions": {"a picture without regions": 2}}
    line = _line(capsys, "dataset notes", counts=counts | {"pictures": told})
    assert "7 with more regions than are kept, 2 without regions: a picture without reg" in line


def test_a_long_command_moves_only_its_own_line(capsys):
    long = "b" * (LONGEST + 1)
    _tell_pairs(("a", "one"), (long, "two"))
    assert capsys.readouterr().err.splitlines() == [f"{'a':<{LONGEST}}  one", f"{long}  two"]


def test_a_measurement_says_what_it_left_out_and_why(capsys):
    facts = {"heldout_loss": {"notes": 2.5}, "heldout_error": {}}
    line = _line(capsys, "measurement general", **facts, not_measured={"titles": "no pairs"})
    assert "loss notes 2.50; titles not measured (no pairs)" in line
