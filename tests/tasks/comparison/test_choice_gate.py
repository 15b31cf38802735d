"""What the gate of a choice asks beside the cheap baseline, of whichever candidate wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from fourstage.command.project import make_project
from tasks.comparison.candidates import candidates_of
from tasks.comparison.choice_entries import entry_of
from tasks.comparison.choice_gate import not_below_baseline, told
from tasks.comparison.choice_rounds import next_round
from tasks.comparison.model_choice import open_choice
from tasks.planning.plan import plan_recipe
from tests.corpora.made_up import rows, write
from tests.tasks.comparison.test_model_choice import SOURCE

RECIPE = """
name: mine
family: {family}
size: tiny
tokenizer: {{vocabulary_size: 300, learn_from: [mine]}}
stages:
  - {{stage: finetune, dataset: mine, head: {{sequence_classification: {{wide: true}}}},
     batch_size: 8, sequence_length: 32, budget: {{epochs: 1}}}}
evaluate: {{metrics: [macro_f1, accuracy]}}
promote: {{model: mine, require: {require}}}
"""
ABOVE = "{macro_f1: {above: cheap_baseline}}"
MORE = "{macro_f1: {above: cheap_baseline, at_least: 0.5}, size_mb: {at_most: 90}}"
OWN = "{accuracy: {at_least: 0.5}}"
ASKS = {"not_below": "cheap_baseline"}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with rows of its own."""
    monkeypatch.setenv("FOURSTAGE_HOME", str(tmp_path / "home"))
    make_project(tmp_path / "own", {"sources/mine.yaml": SOURCE})
    monkeypatch.chdir(tmp_path / "own")
    write(tmp_path / "own" / "rows.jsonl", rows(30))
    return tmp_path / "own" / "recipes" / "mine.yaml"


def written(own: Path, require: str, family: str = "bert") -> None:
    own.write_text(RECIPE.format(family=family, require=require), "utf-8")


@pytest.mark.parametrize(
    ("require", "network", "counting"),
    [
        ("{}", {"macro_f1": ASKS}, {}),
        (OWN, {"macro_f1": ASKS, "accuracy": {"at_least": 0.5}}, {"accuracy": {"at_least": 0.5}}),
        (ABOVE, {"macro_f1": {"above": "cheap_baseline"}}, {}),
        (
            MORE,
            {
                "macro_f1": {"above": "cheap_baseline", "at_least": 0.5},
                "size_mb": {"at_most": 90.0},
            },
            {"macro_f1": {"at_least": 0.5}, "size_mb": {"at_most": 90.0}},
        ),
    ],
)
def test_what_is_asked_of_a_network_and_of_counted_n_grams(own, require, network, counting) -> None:
    written(own, require)
    choice = open_choice("mine", [], False, 5.0)
    turn = next_round(choice)
    assert turn is not None
    gates = {
        name: plan_recipe("mine", entry_of(choice, name, turn).overrides).recipe.require
        for name in ("as-written", "counting")
    }
    assert gates == {"as-written": network, "counting": counting}
    assert ("asks nothing beside" in told(choice.plans["as-written"])) == (ASKS in network.values())
    assert told(choice.plans["counting"]).startswith("Counted n-grams are the cheap baseline's own")


def test_a_recipe_that_counts_keeps_its_own_rule(own: Path) -> None:
    written(own, ABOVE, family="tfidf")
    plan = plan_recipe("mine", candidates_of("mine")[0].overrides)
    assert plan.recipe.require == {"macro_f1": {"above": "cheap_baseline"}}
    assert (not_below_baseline(plan), told(plan)) == ((), "")
    written(own, "{}", family="tfidf")
    assert not_below_baseline(plan_recipe("mine")) == ()


def test_a_perplexity_has_no_baseline_and_the_next_metric_may() -> None:
    packaged = ["stages.task=", "stages.finetune.dataset=smoke_text", "promote={model: mine}"]
    for metrics, found in {
        "[perplexity, chrf]": ("promote.require.chrf.not_below=cheap_baseline",),
        "[perplexity]": (),
    }.items():
        plan = plan_recipe("tasks/multi30k-en-de", [*packaged, f"evaluate.metrics={metrics}"])
        assert not_below_baseline(plan) == found
        assert told(plan).startswith("The recipe's gate asks" if found else "There is no cheap")


def test_where_nothing_is_promoted_nothing_is_asked() -> None:
    for smoke, more in ((True, []), (False, ["promote="])):
        plan = plan_recipe("quickstart", more, smoke)
        assert (not_below_baseline(plan), told(plan)) == ((), "")
