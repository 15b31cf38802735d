"""What a registered model is asked: texts as they were in training."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import mlflow.pyfunc
import pytest

from tasks.registry import predict

RAW = "  a\tdog \u200bruns\r"
WHOLE = "a dog runs"


class Loaded:
    """A loaded model that answers with what it was asked."""

    def __init__(self, head: dict[str, str] | None, inputs: str):
        self._head = head
        self.metadata = SimpleNamespace(
            get_input_schema=lambda: inputs, get_output_schema=lambda: "label"
        )

    def unwrap_python_model(self) -> Any:
        return SimpleNamespace(**({} if self._head is None else {"head": self._head}))

    def predict(self, rows: list[Any]) -> list[dict[str, Any]]:
        return [{"label": row, "score": 1.0} for row in rows]


@pytest.mark.parametrize(
    ("head", "inputs", "row", "expected"),
    [
        (None, "string", [RAW], WHOLE),
        ({"answers": "text"}, "string", [RAW], WHOLE),
        (
            {"answers": "label"},
            "text: string, text_pair: string (required)",
            [RAW, RAW],
            {"text": WHOLE, "text_pair": WHOLE},
        ),
        (
            {"answers": "choice"},
            "text: string, choices",
            [RAW, RAW, "b "],
            {"text": WHOLE, "choices": [WHOLE, "b"]},
        ),
        ({"answers": "spans"}, "string", [RAW], WHOLE),
        (
            {"answers": "extract"},
            "text: string, text_pair: string (required)",
            [RAW, RAW],
            {"text": WHOLE, "text_pair": WHOLE},
        ),
    ],
)
def test_texts_are_read_as_they_were_in_training(monkeypatch, head, inputs, row, expected):
    assert asked(monkeypatch, Loaded(head, inputs), row)["label"] == expected


class Finder(Loaded):
    """A loaded model that finds ``dog``."""

    def predict(self, rows: list[Any]) -> list[dict[str, Any]]:
        return [self._found(row) for row in rows]

    def _found(self, row: Any) -> dict[str, Any]:
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
def test_places_are_those_in_the_text_as_it_was_given(monkeypatch, text, start, part):
    end = None if start is None else start + len(part)
    said = asked(monkeypatch, Finder({"answers": "spans"}, "string"), [text])
    found = [] if part is None else [{"start": start, "end": end, "type": "x", "text": part}]
    assert said["spans"] == found
    assert json.loads(said["answer"]) == [[each["start"], each["end"], "x"] for each in found]
    model = Finder({"answers": "extract"}, "text: string, text_pair: string (required)")
    said = asked(monkeypatch, model, ["which?", text])
    assert (said["text"], said["start"], said["end"]) == (part, start, end)
    assert json.loads(said["answer"]) == [[start, part]][: len(found)]


def asked(monkeypatch: pytest.MonkeyPatch, model: Loaded, row: list[str]) -> dict[str, Any]:
    """What a registered model answers."""
    version = SimpleNamespace(name="m", number=1, model_id="1")
    monkeypatch.setattr(predict, "connect", lambda: None)
    monkeypatch.setattr(predict, "find", lambda *_: version)
    monkeypatch.setattr(predict, "verified", lambda *_: nullcontext("folder"))
    monkeypatch.setattr(predict, "_import_graph_operations", lambda: None)
    monkeypatch.setattr(mlflow.pyfunc, "load_model", lambda _: model)
    with predict.asking("m/1") as (_, ask):
        return ask([row])[0]
