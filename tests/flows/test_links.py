"""A knowledge graph from triples to ranks: the recipe of TransE, as smoke."""

from __future__ import annotations

import pytest

from tests.flows.person import Listener

pytestmark = pytest.mark.slow  # step by step in tests/tasks/run/test_step_by_step.py


def test_heads_and_tails_are_ranked(someone: Listener):
    answer = someone.types("run", "papers/transe", "--smoke", "--json")
    assert answer.code == 0, answer.told()
    found = answer.json["links"]["smoke_triples"]
    assert found["split"] == "test"
    assert 0 < found["unknown"] < found["rows"]
    scores = found["metrics"]
    assert 1 <= scores["mean_rank"] <= found["entities"]
    assert 0 <= scores["hits_at_1"] <= scores["hits_at_3"] <= scores["hits_at_10"] <= 1
    sides = (found["metrics_of_heads"]["mrr"], found["metrics_of_tails"]["mrr"])
    assert abs(sum(sides) / 2 - scores["mrr"]) < 1e-9
    (stage, *_) = answer.json["stages"]
    assert stage["steps"] == 20
    assert "heads and tails of" in answer.err

    again = someone.types(
        "run", "papers/transe", "--smoke", "--json", "--set", "evaluate.split=dev"
    )
    assert again.json["links"]["smoke_triples"]["split"] == "dev"
    assert again.json["stages"][0]["status"] == "reused"
