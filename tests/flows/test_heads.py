"""Every head ends its smoke run with a promoted model that answers."""

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
    writes = "generation" in catalogue.literals("heads", head)["NEEDS"]
    family, objective = ("gpt2", "causal_lm") if writes else ("bert", "masked_lm")
    stages = [
        {"stage": "general", "corpora": {"smoke_general": 1.0}, "objectives": {objective: {}}},
        {"stage": "finetune", "dataset": ROWS[kind], "head": {head: {}}},
    ]
    name = head.replace("_", "-")
    return {"name": name, "family": family, "stages": stages, "promote": {"model": name}}


def asked(person: Person, model: str, kind: str) -> Answer:
    before = {
        "extract": "Which name comes first?\t",
        "number": "Which name comes first?\t",
        "choice": "Call create_commit.\tIt returns nothing.\t",
    }
    text = before.get(kind, "") + TEXT
    return person.types("predict", f"{model}@champion", text, "--json")


@pytest.mark.parametrize("head", catalogue.names("heads"))
def test_its_smoke_run_is_promoted_and_answers(head: str, tmp_path: Path):
    person = Person(tmp_path / "home", tmp_path)
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(recipe(head)), encoding="utf-8")
    try:
        answer = person.types("run", str(file), "--smoke", "--json")
        assert answer.code == 0, answer.told()
        assert set(answer.json["metrics"]) == set(catalogue.answers_of(head).usual)
        assert set(answer.json["baseline"]) == set(answer.json["metrics"])
        assert answer.json["gate"]["decision"] == "promote"
        kind = catalogue.answers_name(head)
        told = asked(person, answer.json["model"]["name"], kind)
        assert told.code == 0, told.told()
        (said,) = told.json["predictions"]
        assert "label" in said if kind == "label" else json.loads(said["answer"]) is not None
    finally:
        end_all(person.home)
