"""Figures of a model, in the order in which MLflow and `diff` keep the last one."""

from __future__ import annotations

from tasks.store.ancestry import gather
from tasks.store.artifacts import Findings
from tasks.store.model_facts import facts_of
from tasks.tracking.run_metrics import figures
from tests.tasks.lifecycle import Lifecycle


def test_the_last_score_from_a_prompt_is_that_of_most_examples(lifecycle: Lifecycle):
    curve = [
        {"shots": shots, "score": shots / 100, "low": 0.0, "high": 1.0, "examples": float(shots)}
        | {"clean": None}
        for shots in (16, 0, 4)  # as a recipe may name them
    ]
    levels = dict.fromkeys(("chance", "majority", "seen_before"))
    asked = Findings({"metric": "accuracy", "curve": curve, **levels})
    inputs = {"stage": "stage general", "dataset": "dataset relations"}
    lifecycle.make("few_shot", "few_shot relations", {}, inputs, lambda _: asked)
    facts = facts_of(gather(lifecycle.store.root, lifecycle["few_shot relations"]))
    assert facts is not None
    found = [f for f in figures(facts) if f.name == "few_shot/relations/accuracy"]
    assert [(f.step, f.value) for f in found] == [(0, 0.0), (4, 0.04), (16, 0.16)]
