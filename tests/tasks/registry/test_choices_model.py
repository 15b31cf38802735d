"""Choices, asked of a registered model: as many a row as there are, answered as `predict` does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.evaluation.predict import predict
from models.interchange.saved_model import export_text_model, load_text_model
from models.protocols import Answer
from models.served.choices import PAIRS, predict_choices
from models.training.gradient import train
from models.training.stage import Budget, Phase
from tasks.registry.predict import asking
from tasks.registry.register_model import register, save_text_model
from tasks.store.ancestry import gather
from tasks.tracking.connection import Tracking
from tasks.tracking.runs import start_lifecycle
from tests.models.clean_process import CleanProcess
from tests.models.training.memory import WORDS, finetuning, tokenizer
from tests.tasks.lifecycle import Lifecycle
from tests.untraced import untraced


class Rows:
    """Rows of a text and as many choices as each has."""

    def __init__(self, rows: list[tuple[str, list[str]]], answers: list[str] | None = None):
        self.answers = answers or [""] * len(rows)
        self.ids = [str(i) for i in range(len(rows))]
        self._ids = [tuple(tokenizer().encode([text, *choices])) for text, choices in rows]

    def __len__(self) -> int:
        return len(self.answers)

    def texts(self, i: int) -> tuple[np.ndarray, ...]:
        return self._ids[i]


def questions(seed: int, number: int) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Rows whose right choice begins as the text does, and its numbers."""
    rng = np.random.default_rng(seed)
    rows, answers = [], []
    for _ in range(number):
        words = rng.choice(WORDS, 6, replace=False).tolist()
        choices = [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in words[2:]]
        choices = choices[: rng.integers(2, 5)]
        right = int(rng.integers(len(choices)))
        choices[right] = f"{words[0]} {choices[right]}"
        rows.append((" ".join(words[: rng.integers(1, 6)]), choices))
        answers.append(str(right))
    return rows, answers


LONG = " ".join(WORDS * 3)
HARD = [
    (LONG, ["waa", "wab"]),
    ("waa", [LONG, "wab", f"wac {LONG}"]),
    (LONG, [LONG, "wab"]),
    ("zzz, 你好", ["(zzz)", "", "WAA é"]),
    ("waa", WORDS[: 2 * PAIRS + 3]),
]
ASKED = [*questions(3, 20)[0], *HARD]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stage, its package and the model that MLflow loads."""
    folder = tmp_path_factory.mktemp("choices")
    job = finetuning(
        head="multiple_choice",
        head_settings={"wide": True},
        rows={"train": Rows(*questions(1, 64))},
        phases=[Phase(24)],
        budget=Budget("steps", 8),
        select=None,
    )
    with untraced():
        train(job, folder / "stage")
    tokenizer().save(folder / "tokenizer")
    export_text_model(folder / "stage", folder / "tokenizer", folder / "package")
    save_text_model(folder / "package", folder / "model")
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Answer]:
    return predict(folder / "stage", tokenizer(), Rows(ASKED))


def check(found: list[dict[str, Any]], expected: list[Answer]) -> None:
    assert [each["answer"] for each in found] == [each.text for each in expected]
    for each, right, (_, choices) in zip(found, expected, ASKED, strict=True):
        assert each["text"] == choices[int(each["answer"])]
        assert each["score"] == each["probabilities"][each["answer"]]
        assert each["probabilities"] == pytest.approx(right.details, rel=1e-4)
        assert list(each["probabilities"]) == [str(n) for n in range(len(choices))]


def test_a_fresh_process_answers_as_the_stage_does(
    folder: Path, expected: list[Answer], elsewhere: CleanProcess
):
    asked = [{"text": text, "choices": choices} for text, choices in ASKED]
    few = [{"text": "waa", "choices": ["wab"]}, {"text": "waa", "choices": []}]
    found, alone, nothing, complaint = elsewhere.predicts(
        folder / "model", asked, asked[:1], [], [asked[0], *few]
    )
    check(found, expected)
    assert alone[0]["probabilities"] == pytest.approx(found[0]["probabilities"], rel=1e-4)
    assert nothing == []
    assert "two choices or more in each row, got fewer in 2 of 3: 2, 3" in complaint
    shown = json.loads((folder / "model" / "input_example.json").read_text())
    assert list(shown[0]) == ["text", "choices"]


def test_the_package_answers_as_the_stage_does(folder: Path, expected: list[Answer]):
    texts, choices = map(list, zip(*ASKED, strict=True))
    check(load_text_model(folder / "package")(texts, choices), expected)


def test_many_rows_without_choices_are_named_up_to_twenty():
    rows = [("a", ["b", "c"]), *[("a", ["b"])] * 30]
    named = ", ".join(str(n) for n in range(2, 22))
    with pytest.raises(ValueError, match=re.escape(f"in 30 of 31: {named}, …")):
        predict_choices(rows, lambda *columns: np.zeros(len(columns[0])))


def test_predict_says_of_each_row_why_it_cannot_be_asked(
    tracking: Tracking, home: Path, folder: Path, expected: list[Answer]
):
    lifecycle = Lifecycle(home, 1, folder / "package")
    run = start_lifecycle(tracking, "demo")
    register(tracking, gather(lifecycle.store.root, lifecycle["package"]), name="who", run_id=run)
    text, choices = ASKED[0]
    rows = [
        [text, *choices],
        ["\t".join([text, *choices])],  # as lines and arguments have it
        [text, *choices, " ", ""],  # as columns of a table have fewer choices
        [text],
        [text, "waa"],
        [text, "waa", "", "wab"],
        ["", "waa", "wab"],
        [" "],
        [],
    ]
    with asking("who/1") as (_, ask):
        found = ask(rows)
        assert ask(rows[3:4]) == [{"label": None, "score": None, "error": "fewer than two choices"}]
    for same in found[:3]:  # one question, written in three ways
        assert same["answer"] == found[0]["answer"]
        assert same["probabilities"] == pytest.approx(expected[0].details, rel=1e-4)
    assert [each.get("error") for each in found] == [
        *[None] * 3,
        *["fewer than two choices"] * 2,
        "empty choice",
        *["empty text"] * 3,
    ]
