"""Questions with answers in a context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpora.answers import DROPPED, MOVED
from fourstage.errors import ContractViolation
from tests.corpora.conftest import Prepare

CONTEXT = "Ada  met Bob in Oslo."
FIELDS = {"id": "id", "text": "question", "text_pair": "context", "label": "answers"}
SOURCE: dict[str, Any] = {"format": "squad", "fields": FIELDS, "answers": "extract"}


def question(name: str, answers: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"Who is {name}?", "answers": answers, **more}


def at(text: str, start: int) -> dict[str, Any]:
    return {"text": text, "answer_start": start}


def file(path: Path, questions: list[Any], context: Any = CONTEXT) -> Path:
    article = {"title": "People", "paragraphs": [{"context": context, "qas": questions}]}
    path.write_text(json.dumps({"version": "v2.0", "data": [article]}, indent=1), "utf-8")
    return path


def test_questions_are_rows_with_answers_in_the_cleaned_context(tmp_path: Path, dataset: Prepare):
    questions = [
        question("a", [at("Ada", 0), at("Bob", 9)], is_impossible=False),
        question("b", [], is_impossible=True, plausible_answers=[at("Ada", 0)]),
        question("c", [at("Oslo", 0), at("Paris", 3)]),
    ]
    prepared = dataset(file(tmp_path / "t.json", questions), **SOURCE)
    rows = {row["id"]: row for row in prepared.table()}
    assert {row["text_pair"] for row in rows.values()} == {"Ada met Bob in Oslo."}
    assert rows["a"]["label"] == '[[0, "Ada"], [8, "Bob"]]'
    assert rows["b"]["label"] == "[]"
    assert rows["c"]["label"] == '[[15, "Oslo"]]'
    assert rows["a"]["text"] == "Who is a?"
    assert prepared.counts.details["mended"] == {
        what: {"count": 1, "first_ids": ["c"]} for what in (DROPPED, MOVED)
    }
    noted = [(line["id"], line["reason"], line["severity"]) for line in prepared.rejected()]
    assert noted == [("c", DROPPED, "mended"), ("c", MOVED, "mended")]


def test_what_is_wrong_with_a_question_is_told_by_its_id(tmp_path: Path, dataset: Prepare):
    questions = [
        question("good", [at("Ada", 0)]),
        question("nowhere", [at("Eve", 0)]),
        question("twice", [at("o", 0)]),
        question("none", [], is_impossible=False),
        question("shape", [{"answer": "Ada"}]),
        question("text", [at("Ada", 0)]) | {"question": None},
        "not a question",
    ]
    prepared = dataset(file(tmp_path / "t.json", questions), **SOURCE)
    assert [row["id"] for row in prepared.table()] == ["good"]
    assert {row["id"]: row["reason"] for row in prepared.rejected()} == {
        "nowhere": "answer text not at its offset",
        "twice": "answer text not at its offset",
        "none": "a question without answers",
        "shape": "answers of unknown shape",
        "text": "field 'question' is not text",
        "t.json:7": "a question that is not a JSON object",
    }


def test_an_article_is_a_group(tmp_path: Path, dataset: Prepare):
    articles = [
        {
            "title": f"article {number}",
            "paragraphs": [
                {
                    "context": f"{CONTEXT} {number}",
                    "qas": [question(f"{number}-{n}", [at("Ada", 0)])],
                }
                for n in range(5)
            ],
        }
        for number in range(40)
    ]
    (tmp_path / "t.json").write_text(json.dumps({"data": articles}))
    prepared = dataset(tmp_path / "t.json", **SOURCE | {"fields": FIELDS | {"group": "article"}})
    splits: dict[str, set[str]] = {}
    for row in prepared.table():
        splits.setdefault(row["id"].split("-")[0], set()).add(row["split"])
    assert set.union(*splits.values()) == {"train", "dev", "test"}
    assert all(len(split) == 1 for split in splits.values())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1", "expected one JSON text, got not JSON"),
        ('{"data": 3}', "an object with a list 'data'"),
        ('{"data": [], "data": []}', "a JSON key twice"),
        ('{"data": NaN}', "NaN or Infinity in JSON"),
        ('{"data": []}', "expected at least one record"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, dataset: Prepare, content: str, said: str
):
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(ContractViolation, match=r"t\.json") as caught:
        dataset(tmp_path / "t.json", **SOURCE)
    assert said in str(caught.value)
