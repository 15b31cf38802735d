"""A word in two sentences, with its answer in another file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare


def pair(name: str, **more: Any) -> dict[str, Any]:
    sentences = {"sentence1": "A key play.", "sentence2": "Children play."}
    offsets = {"start1": "6", "end1": "10", "start2": "9", "end2": "13"}
    return {"id": name, "lemma": "play", "pos": "NOUN", **sentences, **offsets, **more}


def source(folder: Path, pairs: list[Any], gold: list[Any]) -> dict[str, Any]:
    (folder / "a.data").write_text(json.dumps(pairs, indent=4))
    (folder / "a.gold").write_text(json.dumps(gold, indent=4))
    return {
        "files": str(folder / "a.data"),
        "join": {"by": "id", "files": str(folder / "a.gold")},
        "fields": {"id": "id", "text": "sentence1", "text_pair": "sentence2", "label": "tag"},
        "label_names": {"T": "same", "F": "different"},
        "markings": ["<<", ">>"],
    }


def test_the_word_is_marked_and_the_answer_joined(tmp_path: Path, dataset: Prepare):
    pairs = [pair("a"), pair("b", sentence2="Plays end.", start2=0, end2=5)]
    gold = [{"id": "b", "tag": "T"}, {"id": "a", "tag": "F"}]
    prepared = dataset(**source(tmp_path, pairs, gold))
    rows = {row["id"]: (row["text"], row["text_pair"], row["label"]) for row in prepared.table()}
    assert rows == {
        "a": ("A key << play >>.", "Children << play >>.", "different"),
        "b": ("A key << play >>.", "<< Plays >> end.", "same"),
    }


def test_wrong_offsets_and_missing_answers_are_set_aside(tmp_path: Path, dataset: Prepare):
    pairs = [
        pair("good"),
        pair("outside", end1="12"),
        pair("empty", start1="10"),
        pair("words", start1="six"),
        pair("negative", start2="-4"),
        pair("no text", sentence1=None),
        pair("no answer"),
        "no object",
    ]
    prepared = dataset(**source(tmp_path, pairs, [{"id": "good", "tag": "T"}]))
    assert [row["id"] for row in prepared.table()] == ["good"]
    reasons = {row["id"]: row["reason"] for row in prepared.rejected()}
    wrong = ("outside", "empty", "words", "negative", "no text")
    assert reasons == dict.fromkeys(wrong, "a word that is not at its offsets") | {
        "a.data:7": "no record to join by 'id'",
        "a.data:8": "not a JSON object",
    }


def test_an_object_is_another_format(tmp_path: Path, dataset: Prepare):
    settings = source(tmp_path, [], [])
    (tmp_path / "a.data").write_text("{}")
    with pytest.raises(ContractViolation, match=r"a\.data: expected the JSON of MCL-WiC"):
        dataset(**settings)
