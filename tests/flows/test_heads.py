"""Every head ends its smoke run with a promoted model that answers, where its kind is served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fourstage.recipe.smoke import ROWS
from models import catalogue
from tests.flows.person import Answer, Person, end_all

pytestmark = pytest.mark.slow
TEXT = "The create_commit function returns a CommitInfo."


def recipe(head: str) -> dict[str, Any]:
    kind = catalogue.answers_name(head)
    stages = [
        {"stage": "general", "corpora": {"smoke_general": 1.0}, "objectives": {"masked_lm": {}}},
        {"stage": "finetune", "dataset": ROWS[kind], "head": {head: {}}},
    ]
    made: dict[str, Any] = {"name": head.replace("_", "-"), "family": "bert", "stages": stages}
    if catalogue.answers_of(head).is_served:
        made["promote"] = {"model": head.replace("_", "-")}
    return made


def asked(person: Person, model: str, kind: str) -> Answer:
    text = f"Which name comes first?\t{TEXT}" if kind in ("extract", "number") else TEXT
    return person.types("predict", f"{model}@champion", text, "--json")


@pytest.mark.parametrize("head", catalogue.names("heads"))
def test_its_smoke_run_is_promoted_and_answers(head: str, tmp_path: Path):
    person = Person(tmp_path / "home", tmp_path)
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(recipe(head)), encoding="utf-8")
    try:
        answer = person.types("run", str(file), "--smoke", "--json")
        assert answer.code == 0, answer.told()
        answers = catalogue.answers_of(head)
        assert set(answer.json["metrics"]) == set(answers.usual)
        if not answers.is_served:
            return
        assert answer.json["gate"]["decision"] == "promote"
        kind = catalogue.answers_name(head)
        told = asked(person, answer.json["model"]["name"], kind)
        assert told.code == 0, told.told()
        (said,) = told.json["predictions"]
        assert "label" in said if kind == "label" else json.loads(said["answer"]) is not None
    finally:
        end_all(person.home)
