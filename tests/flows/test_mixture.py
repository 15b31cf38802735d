"""Tasks in a mixture: run, shown, planned, and traced to each of their datasets."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.flows.own_project import SIZE
from tests.flows.person import Listener

pytestmark = pytest.mark.slow  # step by step in tests/tasks/run/test_step_by_step.py
PREFIXES = {
    "smoke_text": "go on with this:",
    "smoke_labels": "which library:",
    "smoke_number": "how alike:",
}
SAID = {
    "name": "mixes",
    "family": "t5",
    "size": SIZE | {"num_decoder_layers": 1},
    "tokenizer": {"vocabulary_size": 1000},
    "stages": [
        {
            "stage": "finetune",
            "dataset": "smoke_text",
            "mixture": {
                "beside": {n: PREFIXES[n] for n in ("smoke_labels", "smoke_number")},
                "temperature": 2.0,
            },
            "head": {"sequence_to_sequence": {"target_length": 16, "prefix": "go on with this:"}},
            "sequence_length": 48,
            "batch_size": 8,
            "budget": {"steps": 4},
        },
    ],
    "evaluate": {"metrics": ["chrf"]},
    "promote": {"model": "mixes", "require": {"chrf": {"at_least": 0.0}}},
}


def test_a_mixture_is_run_shown_planned_and_traced(someone: Listener):
    (someone.person.folder / "mixes.yaml").write_text(yaml.safe_dump(SAID), "utf-8")
    answer = someone.types("run", "mixes.yaml", "--json")
    assert answer.code == 0, answer.told()
    (stage,) = (each for each in answer.json["stages"] if each["status"] == "trained")
    assert set(stage["passes"]) == set(PREFIXES)
    assert set(stage["heldout_loss"]) <= {"smoke_text"}

    shown = someone.types("show", "mixes.yaml", "finetune")
    assert shown.code == 0, shown.told()
    examples = shown.out.split("\nanswer: ")[1:]
    assert len(examples) == 12  # four of each task
    written = [json.loads(each.splitlines()[0]) for each in examples]
    assert {text for (text,) in written[4:8]} <= {"click", "huggingface-hub", "jinja2", "pydantic"}
    assert all(re.fullmatch(r"[01]\.[02468]", text) for (text,) in written[8:])

    again = someone.types("run", "mixes.yaml", "--json").json["stages"]
    assert {each["status"] for each in again} == {"reused", "skipped"}
    other = ("--set", "stages.finetune.mixture.temperature=1", "--json")
    planned = someone.types("plan", "mixes.yaml", *other)
    assert planned.code == 0, planned.told()
    (cost,) = planned.json["costs"]
    assert set(cost["passes"]) == set(PREFIXES)
    steps = {step["step"]: step for step in planned.json["steps"]}
    assert steps["stage finetune"]["status"] == "to be made"
    assert any("mixture" in why for why in steps["stage finetune"]["why"])

    hops = someone.types("trace", "models:/mixes@champion", "--json").json["hops"]
    assert {f"dataset {name}" for name in PREFIXES} <= {hop["name"] for hop in hops}

    bare, own, other = "Reads a file", "go on with this: reads", "which library: reads"
    said = "begins with the prefix 'which library:'; expected a text without one"
    known = "(known prefixes: 'go on with this:', 'which library:', 'how alike:')"
    refused = someone.types("generate", "mixes.yaml", "finetune", bare, other)
    assert refused.code == 3, refused.told()
    assert f"prompt 1: it {said}" in (told := " ".join(refused.err.split()))
    assert known in told
    answered = someone.types("predict", "mixes@champion", bare, own, other, "--json")
    assert answered.code == 0, answered.told()
    first, second, third = answered.json["predictions"]
    assert first["text"] is not None
    assert "error" not in first
    assert (second["text"], second["score"]) == (None, None)
    assert "prefix 'go on with this:'" in second["error"]
    assert said in third["error"]

    refused = someone.types("plan", "mixes.yaml", "--set", "stages.finetune.mixture.limit=0")
    assert (refused.code, "mixture.limit" in refused.err) == (2, True), refused.told()
