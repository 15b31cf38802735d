"""Recipes whose answers are no labels, step by step; with flows and commands in tests/flows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

from fourstage.errors import ContractViolation, RecipeError
from tasks.planning.embed_texts import embed_texts
from tasks.planning.layout import Plan
from tasks.planning.plan import plan_recipe
from tasks.planning.show_examples import show_examples
from tasks.planning.write_texts import write_texts
from tests.flows import test_few_shot, test_generation, test_mixture
from tests.tasks.step_by_step import made_here

pytestmark = pytest.mark.usefixtures("at_home")


def test_rows_are_answered_from_prompts(planned: Callable[..., Plan]):
    asked = {name: dict(said) for name, said in test_few_shot.ASKED.items() if "text" not in name}
    asked["smoke_choice"]["rows"] = 6
    evaluate = test_few_shot.RECIPE["evaluate"] | {"few_shot": asked}
    made = made_here(planned(test_few_shot.RECIPE | {"evaluate": evaluate}))
    found = {name: made[f"few_shot {name}"].facts for name in asked}
    for facts in found.values():
        assert [point["shots"] for point in facts["curve"]] == [0, 1]
        assert facts["split"] == "dev"
        for point in facts["curve"]:
            assert point["low"] <= point["score"] <= point["high"]
            assert point["examples"] <= point["shots"]
        assert facts["texts"] == ["smoke_general"]
        assert facts["clean_rows"] == round(facts["rows"] * (1 - facts["seen_before"]))
    labels, choices = found.values()
    assert labels["chance"] == 0.25
    assert choices["chance"] == pytest.approx(1 / 3)
    assert labels["seen_before"] > 0.5
    wrong = {"smoke_labels": asked["smoke_labels"] | {"verbalisers": {"x": "y"}}}
    evaluate = test_few_shot.RECIPE["evaluate"] | {"few_shot": wrong}
    with pytest.raises(RecipeError, match="expected labels of the dataset"):
        made_here(planned(test_few_shot.RECIPE | {"evaluate": evaluate}))


def test_heads_and_tails_of_a_graph_are_ranked():
    made = made_here(plan_recipe("papers/transe", smoke=True))
    found = made["links smoke_triples"].facts
    assert found["split"] == "test"
    assert 0 < found["unknown"] < found["rows"]
    scores = found["metrics"]
    assert 1 <= scores["mean_rank"] <= found["entities"]
    assert 0 <= scores["hits_at_1"] <= scores["hits_at_3"] <= scores["hits_at_10"] <= 1
    sides = (found["metrics_of_heads"]["mrr"], found["metrics_of_tails"]["mrr"])
    assert abs(sum(sides) / 2 - scores["mrr"]) < 1e-9
    assert made["stage general"].facts["steps"] == 20
    on_dev = made_here(plan_recipe("papers/transe", ["evaluate.split=dev"], smoke=True))
    assert on_dev["links smoke_triples"].facts["split"] == "dev"
    assert on_dev["stage general"].key == made["stage general"].key


def test_a_network_learns_to_write_and_continues_texts(
    planned: Callable[..., Plan], tmp_path: Path
):
    plan = planned(test_generation.RECIPE)
    made = made_here(plan)
    scores = made["evaluation"].facts
    assert set(scores["metrics"]) == {"perplexity", "chrf", "perplexity_a_word"}
    assert 100 < scores["metrics"]["perplexity"] < scores["metrics"]["perplexity_a_word"]
    assert set(scores["baseline"]) == set(scores["majority"]) == {"chrf"}
    measured = [made[f"measurement {name}"].facts for name in ("general", "finetune")]
    assert [sorted(each["heldout_loss"]) for each in measured] == [
        ["smoke_general", "smoke_text"]
    ] * 2

    shown = "\n".join(show_examples(plan, "finetune"))
    assert shown.count("\nanswer: ") == 10
    assert shown.count("\nreads ") >= shown.count("\nanswer: ")

    texts, drawn = ["The function", "It returns"], {"max_new_tokens": 8, "sample": True}
    first, again, other = (
        write_texts(plan, "general", texts, drawn | {"seed": seed}) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert [each["text"] for each in first] == texts
    assert all(each["log_probability"] < 0 for each in first)
    assert all(each["whole"] == each["text"] + each["written"] for each in first)
    untidy, from_nothing = write_texts(
        plan, "general", ["\ufeffThe\xa0 function \n", ""], drawn | {"seed": 1}
    )
    assert untidy == first[0] | {"text": "\ufeffThe\xa0 function \n"}
    assert from_nothing["whole"] == from_nothing["written"]
    for empty in (" ", "It returns\t"):
        with pytest.raises(ContractViolation, match="prompt 1: empty text"):
            write_texts(plan, "finetune", ["It returns", empty], {})
    (found,) = write_texts(plan, "finetune", ["It returns"], {})
    assert found["whole"] == found["written"] != "It returns"
    assert found["log_probability"] < 0
    with pytest.raises(ContractViolation, match="64 new ones are wanted; the network reads 64"):
        write_texts(plan, "general", texts, {"max_new_tokens": 64})

    file = tmp_path / "layers.parquet"
    told = embed_texts(plan, "general", [[("a", "It returns"), ("b", "")]], file, lambda _: None)
    assert told["texts"] == 2
    rows = parquet.read_table(file).to_pylist()
    assert [row["id"] for row in rows] == ["a"] * len(rows[::2]) + ["b"] * len(rows[::2])
    assert "".join(rows[0]["tokens"]).replace("##", "") == "itreturns"


def test_tasks_in_a_mixture_are_trained_shown_and_told_apart_by_their_prefixes(
    planned: Callable[..., Plan],
):
    said = {key: value for key, value in test_mixture.SAID.items() if key != "promote"}
    plan = planned(said, smoke=False)
    made = made_here(plan)
    assert set(made["stage finetune"].facts["passes"]) == set(test_mixture.PREFIXES)
    assert set(made["measurement finetune"].facts["heldout_loss"]) <= {"smoke_text"}
    examples = "\n\n".join(show_examples(plan, "finetune")).split("\nanswer: ")[1:]
    assert len(examples) == 12  # four of each task
    written = [json.loads(each.splitlines()[0]) for each in examples]
    assert {text for (text,) in written[4:8]} <= {"click", "huggingface-hub", "jinja2", "pydantic"}
    assert all(re.fullmatch(r"[01]\.[02468]", text) for (text,) in written[8:])
    begins = "prompt 1: it begins with the prefix 'which library:'; expected a text without one"
    with pytest.raises(ContractViolation, match=begins):
        write_texts(plan, "finetune", ["Reads a file", "which library: reads"], {})
