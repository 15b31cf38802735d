"""What a model is asked: texts as they were in training. Real models are in the tests beside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasks.registry.predict import CHOICES, Questioning

RAW = "  a\tdog \u200bruns\r"
WHOLE = "a dog runs"


def echo(rows: list[Any]) -> list[dict[str, Any]]:
    """Answers with what was asked."""
    return [{"label": row, "score": 1.0} for row in rows]


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize(
    ("takes", "row", "expected"),
    [
        ((1,), [RAW], WHOLE),
        ((2,), [RAW, RAW], {"text": WHOLE, "text_pair": WHOLE}),
        (CHOICES, [RAW, RAW, "b "], {"text": WHOLE, "choices": [WHOLE, "b"]}),
    ],
)
def test_texts_are_read_as_they_were_in_training(takes, row, expected, places: bool):
    assert Questioning(echo, takes, "m/1", places).ask([row])[0]["label"] == expected


def finds_dog(rows: list[Any]) -> list[dict[str, Any]]:
    """Finds ``dog``: as a span of a text, or as the answer to a pair of question and text."""
    return [_found(row) for row in rows]


def _found(row: Any) -> dict[str, Any]:
    text = row["text_pair"] if isinstance(row, dict) else row
    place = text.find("dog")
    start, end = (None, None) if place < 0 else (place, place + 3)
    if isinstance(row, dict):
        answer = [] if start is None else [[start, "dog"]]
        said = {"text": "dog" if answer else None, "start": start, "end": end}
        return said | {"answer": json.dumps(answer), "score": 1.0}
    spans = [] if start is None else [{"start": start, "end": end, "type": "x", "text": "dog"}]
    return {"spans": spans, "answer": json.dumps([[start, end, "x"]][: len(spans)]), "score": 1}


@pytest.mark.parametrize(
    ("text", "start", "part"),
    [
        (RAW, 4, "dog"),
        ("A\r\n\u3000do\u00adg\u200b ran", 4, "do\u00adg"),
        ("dog\x1b[0 m  ran", 0, "dog"),  # whose places can't be told: it is read as it is
        ("a  cat", None, None),
    ],
)
def test_places_are_those_in_the_text_as_it_was_given(text, start, part):
    end = None if start is None else start + len(part)
    said = Questioning(finds_dog, (1,), "m/1", places=True).ask([[text]])[0]
    found = [] if part is None else [{"start": start, "end": end, "type": "x", "text": part}]
    assert said["spans"] == found
    assert json.loads(said["answer"]) == [[each["start"], each["end"], "x"] for each in found]
    said = Questioning(finds_dog, (2,), "m/1", places=True).ask([["which?", text]])[0]
    assert (said["text"], said["start"], said["end"]) == (part, start, end)
    assert json.loads(said["answer"]) == [[start, part]][: len(found)]
