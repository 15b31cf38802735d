"""Sentences with two marked entities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpora.identity import normal_form
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare

SOURCE: dict[str, Any] = {
    "format": "fewrel",
    "fields": {"text": "text", "label": "relation"},
    "label_names": {"P1": "crosses", "P2": "part of"},
    "markings": ["<<", ">>", "[[", "]]"],
}
TOKENS = ["The", "Oslo", "Bridge", " ", "crosses", "the", "Aker", "."]


def sentence(head: list[int], tail: list[int], **more: Any) -> dict[str, Any]:
    entities = {"h": ["oslo bridge", "Q1", [head]], "t": ["aker", "Q2", [tail, [0]]]}
    return {"tokens": TOKENS} | entities | more


def test_first_mentions_are_marked_and_blank_words_left_out(tmp_path: Path, dataset: Prepare):
    relations = {"P1": [sentence([1, 2], [6])], "P2": [sentence([6], [1, 2])]}
    (tmp_path / "val.json").write_text(json.dumps(relations))
    prepared = dataset(tmp_path / "val.json", **SOURCE)
    assert {row["label"]: row["text"] for row in prepared.table()} == {
        "crosses": "The << Oslo Bridge >> crosses the [[ Aker ]] .",
        "part of": "The [[ Oslo Bridge ]] crosses the << Aker >> .",
    }
    assert len({row["split"] for row in prepared.table()}) == 1  # one sentence, marked twice


def test_what_cannot_be_marked_is_set_aside(tmp_path: Path, dataset: Prepare):
    wrong = [
        sentence([6], [5, 6]),
        sentence([7, 8], [1]),
        sentence([-1], [1]),
        sentence([], [1]),
        sentence([1], [6], h=["x", "Q1"]),
        sentence([1], [6], tokens=None),
        {"tokens": TOKENS},
        None,
    ]
    relations = {"P1": [sentence([1, 2], [6]), *wrong], "P3": [sentence([1], [6])], "P2": 3}
    (tmp_path / "val.json").write_text(json.dumps(relations))
    prepared = dataset(tmp_path / "val.json", **SOURCE)
    assert prepared.counts.kept == 1
    assert prepared.counts.quarantined == {
        "entities that overlap or have no words": 3,
        "not a sentence with 'tokens', 'h' and 't'": 6,
        "a label that is not among 'label_names'": 1,
    }


def test_a_list_is_another_format(tmp_path: Path, dataset: Prepare):
    (tmp_path / "val.json").write_text("[]")
    with pytest.raises(ContractViolation, match=r"val\.json: expected the JSON of FewRel"):
        dataset(tmp_path / "val.json", **SOURCE)


def test_marks_are_the_sources_own_and_no_part_of_what_a_text_says(
    tmp_path: Path, dataset: Prepare
):
    relations = {"P1": [sentence([1, 2], [6])], "P2": [sentence([6], [1, 2])]}
    (tmp_path / "val.json").write_text(json.dumps(relations))
    usual = dataset(tmp_path / "val.json", **SOURCE)
    marks = ["[HD]", "[HD]", "[TL]", "[TL]"]
    ernie = dataset(tmp_path / "val.json", **SOURCE | {"markings": marks})
    texts = {row["label"]: row["text"] for row in ernie.table()}
    assert texts == {
        "crosses": "The [HD] Oslo Bridge [HD] crosses the [TL] Aker [TL] .",
        "part of": "The [TL] Oslo Bridge [TL] crosses the [HD] Aker [HD] .",
    }
    assert [row["split"] for row in ernie.table()] == [row["split"] for row in usual.table()]
    (plain,) = {normal_form(text, marks) for text in texts.values()}
    assert plain == "the oslo bridge crosses the aker"
    with pytest.raises(ContractViolation, match="markings: expected four, before and behind"):
        dataset(tmp_path / "val.json", **SOURCE | {"markings": ["[ENT]"]})
