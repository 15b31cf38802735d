"""Facts about a model: which of several scores count, and what a loss is compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.store.ancestry import gather, join
from tasks.store.artifacts import MANIFEST, Findings
from tasks.store.model_facts import facts_in_store, facts_of
from tasks.tracking.run_metrics import figures
from tests.tasks.lifecycle import Lifecycle

LOSSES = {"heldout_loss": {"trials": 3.5}, "heldout_error": {}}


def _measure(made: Lifecycle, stage: str, name: str, **facts: Any) -> None:
    read = {"stage": f"stage {stage}", "tokens trials": "tokens trials"}
    settings = {"measured as": name}
    made.make("measurement", name, settings, read, lambda _: Findings({**LOSSES, **facts}))


def _text(made: Lifecycle) -> None:
    read = {"data": "corpus trials", "tokenizer": "tokenizer"}
    facts = {"unigram_loss": 6.0, "tokens": {"train": 9, "heldout": 3}}
    made.make("tokens", "tokens trials", {}, read, lambda _: Findings(facts))


def _evaluate(made: Lifecycle, stage: str, name: str, accuracy: float) -> None:
    scores = {"metrics": {"accuracy": accuracy}, "answers": "label"}
    settings = {"evaluated as": name}
    made.make("evaluation", name, settings, {"stage": f"stage {stage}"}, lambda _: Findings(scores))


def _date(made: Lifecycle, name: str, created: str) -> None:
    """Set when an entry was made: entries of one test are of one second."""
    manifest = made[name].folder / MANIFEST
    facts = json.loads(manifest.read_text("utf-8")) | {"created": created}
    manifest.write_text(json.dumps(facts), "utf-8")


def test_of_several_evaluations_and_measurements_the_newest_count(lifecycle: Lifecycle):
    _text(lifecycle)
    for number, name in enumerate(("old", "middle", "new"), 1):
        _measure(lifecycle, "finetune", f"measurement {name}", number=number)
        _evaluate(lifecycle, "finetune", f"evaluation {name}", number / 10)
        for kind in ("measurement", "evaluation"):
            _date(lifecycle, f"{kind} {name}", f"203{number}-01-01T00:00:00+00:00")
    stage = lifecycle["stage finetune"]
    facts = facts_in_store(lifecycle.store, stage.reference)
    assert facts is not None
    assert facts.scores["metrics"] == {"accuracy": 0.3}
    assert facts.measurements[stage.key].facts["number"] == 3


def test_the_scores_of_a_stage_before_are_not_those_of_a_stage(home: Path):
    made = Lifecycle(home)
    inputs = {"tokenizer": "tokenizer", "teacher of it": "stage finetune"}
    made.make("stage", "stage pupil", {"name": "pupil"}, inputs, lambda _: Findings({}))
    facts = facts_in_store(made.store, made["stage pupil"].reference)
    assert facts is not None
    assert facts.evaluation is None


@pytest.mark.parametrize(
    ("a_character", "guessed"),
    [({}, False), ({"trials": 1.2}, True), (None, True)],  # None: of an earlier version
)
def test_a_loss_that_is_not_of_tokens_is_not_compared_with_guessing_tokens(
    lifecycle: Lifecycle, a_character: dict[str, float] | None, guessed: bool
):
    _text(lifecycle)
    told = {} if a_character is None else {"heldout_loss_a_character": a_character}
    _measure(lifecycle, "general", "measurement general", **told)
    root = lifecycle.store.root
    whole = gather(root, lifecycle["stage general"])
    facts = facts_of(join(whole, gather(root, lifecycle["measurement general"])))
    assert facts is not None
    curve = [(f.step, f.value) for f in figures(facts) if f.name == "heldout_loss/trials"]
    assert curve == [(0, 6.0), (1, 3.5)][not guessed :]
