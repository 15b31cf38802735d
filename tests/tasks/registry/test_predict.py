"""What a registered model is asked: texts as they were in training."""

from __future__ import annotations

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
        ({"answers": "spans"}, "string", [RAW], RAW),  # whose offsets are those of this text
        (
            {"answers": "extract"},
            "text: string, text_pair: string (required)",
            [RAW, RAW],
            {"text": RAW, "text_pair": RAW},
        ),
    ],
)
def test_texts_are_read_as_they_were_in_training(monkeypatch, head, inputs, row, expected):
    version = SimpleNamespace(name="m", number=1, model_id="1")
    monkeypatch.setattr(predict, "connect", lambda: None)
    monkeypatch.setattr(predict, "find", lambda *_: version)
    monkeypatch.setattr(predict, "verified", lambda *_: nullcontext("folder"))
    monkeypatch.setattr(predict, "_import_graph_operations", lambda: None)
    monkeypatch.setattr(mlflow.pyfunc, "load_model", lambda _: Loaded(head, inputs))
    with predict.asking("m/1") as (_, ask):
        assert ask([row])[0]["label"] == expected
