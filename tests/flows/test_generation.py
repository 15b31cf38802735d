"""A network learns to write: scores of a run, examples of rows, texts that it continues."""

from __future__ import annotations

import pytest
import yaml
from pyarrow import parquet

from tests.flows.person import Listener

pytestmark = pytest.mark.slow  # step by step in tests/tasks/run/test_step_by_step.py
RECIPE = {
    "name": "writes",
    "family": "gpt2",
    "size": "tiny",
    "stages": [
        {
            "stage": "general",
            "corpora": {"smoke_general": 1.0},
            "objectives": {"causal_lm": {}},
            "budget": {"steps": 4},
        },
        {
            "stage": "finetune",
            "dataset": "smoke_text",
            "head": {"sequence_to_sequence": {"target_length": 16, "beams": 2}},
            "budget": {"steps": 4},
            "select": {"metric": "perplexity"},
        },
    ],
    "evaluate": {"metrics": ["perplexity", "chrf", "perplexity_a_word"]},
}


def test_a_network_learns_to_write_and_continues_texts(someone: Listener):
    (someone.person.folder / "writes.yaml").write_text(yaml.safe_dump(RECIPE), "utf-8")
    answer = someone.types("run", "writes.yaml", "--smoke", "--json")
    assert answer.code == 0, answer.told()
    assert set(answer.json["metrics"]) == {"perplexity", "chrf", "perplexity_a_word"}
    # About as many equally likely tokens as there are; a word has several of them.
    assert 100 < answer.json["metrics"]["perplexity"] < answer.json["metrics"]["perplexity_a_word"]
    assert set(answer.json["baseline"]) == set(answer.json["majority"]) == {"chrf"}
    # Next tokens are predicted with the token table: the head has no weights, and is measured.
    trained = [stage for stage in answer.json["stages"] if stage["status"] == "trained"]
    assert [sorted(stage["heldout_loss"]) for stage in trained] == [
        ["smoke_general", "smoke_text"]
    ] * 2

    shown = someone.types("show", "writes.yaml", "--smoke", "finetune")
    assert (shown.code, shown.out.count("\nanswer: ")) == (0, 10), shown.told()
    assert shown.out.count("\nreads ") >= shown.out.count("\nanswer: ")

    asked = ("generate", "writes.yaml", "--smoke", "general", "The function", "It returns")
    drawn = ("--max-new-tokens", "8", "--sample", "--top-k", "50")
    found = [someone.types(*asked, *drawn, "--seed", seed, "--json") for seed in ("1", "1", "2")]
    assert all(each.code == 0 for each in found), found[0].told()
    first, again, other = (each.json for each in found)
    assert first == again != other
    assert [each["text"] for each in first] == ["The function", "It returns"]
    assert all(each["log_probability"] < 0 for each in first)
    assert all(each["whole"] == each["text"] + each["written"] for each in first)

    lines = ['{"id": "a", "text": "It returns"}', '{"id": "b", "text": ""}']
    (someone.person.folder / "texts.jsonl").write_text("\n".join(lines), "utf-8")
    asked_for = ("--input", "texts.jsonl", "--column", "text", "--output", "layers.parquet")
    embeds = ("embed", "writes.yaml", "--smoke", "general", *asked_for)
    embedded = someone.types(*embeds, "--json")
    assert embedded.code == 0, embedded.told()
    assert embedded.json["texts"] == 2
    rows = parquet.read_table(someone.person.folder / "layers.parquet").to_pylist()
    assert [row["id"] for row in rows] == ["a"] * len(rows[::2]) + ["b"] * len(rows[::2])
    assert "".join(rows[0]["tokens"]).replace("##", "") == "itreturns"
    assert "is there already" in someone.types(*embeds).err

    answered = someone.types(
        "generate", "writes.yaml", "--smoke", "finetune", "It returns", "--json"
    )
    assert answered.code == 0, answered.told()
    (found,) = answered.json  # with the head's two beams, up to its target's length
    assert found["whole"] == found["written"] != "It returns"
    assert found["log_probability"] < 0

    frozen = ("--set", "stages.finetune.feature_based={}")
    refused = someone.types("plan", "writes.yaml", *frozen)
    assert refused.code == 2, refused.told()
    assert "feature_based: head sequence_to_sequence writes with the network itself" in refused.err
    refused = someone.types(*asked, "--max-new-tokens", "64")
    assert refused.code == 3, refused.told()
    assert "64 new ones are wanted; the network reads 64 tokens" in refused.err
    refused = someone.types(*asked, "--top-k", "5")
    assert (refused.code, "--sample" in refused.err) == (2, True), refused.told()
