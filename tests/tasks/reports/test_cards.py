"""Cards and tables: self-contained Markdown."""

from __future__ import annotations

import base64
from dataclasses import replace

from tasks.reports.cards import contract_card, left_out, stage_card
from tasks.reports.plots import LARGEST, loss_plot
from tests.tasks.lifecycle import Lifecycle, history


def test_a_stage_card_shows_key_cost_change_and_curve(lifecycle: Lifecycle):
    stage = lifecycle["stage domain"]
    card = stage_card(
        stage,
        reused=False,
        links={"MLflow run": "http://127.0.0.1:5000/#/x", "model": None},
        before={"trials": 5.0},
        after={"trials": 3.2},
    )
    assert "| trained |" in card
    assert stage.key[:12] in card
    assert "| trials | 5.00 | 3.20 | -1.80 |" in card
    assert "[MLflow run](http://127.0.0.1:5000/#/x)" in card
    assert "[model]" not in card
    address = card.split("(data:image/png;base64,")[1].split(")")[0]
    assert base64.b64decode(address).startswith(b"\x89PNG")
    assert len(card) < LARGEST
    assert "reused" in stage_card(stage, reused=True)
    assert "contradictory" not in card
    counts = {"read": 1200, "kept": 1190, "contradictory": {"rows": 2, "ids": ["a", "b"]}}
    card = stage_card(stage, reused=False, labelled={"trials": counts})
    assert "1,190 of 1,200" in card
    assert "contradictory rows" in card
    assert "| task |" not in card


def test_the_card_of_a_mixture_says_how_often_each_task_was_read(lifecycle: Lifecycle):
    counts = {"read": 1200, "kept": 1190, "contradictory": {"rows": 2, "ids": ["a", "b"]}}
    stage = lifecycle["stage domain"]
    stage = replace(stage, facts={**stage.facts, "passes": {"own": 1.25, "other": 0.5}})
    card = stage_card(stage, reused=False, labelled={"own": counts, "other": counts | {"kept": 7}})
    assert "| task | rows kept | contradictory rows | passes |" in card
    assert "| own | 1,190 of 1,200 | 2 | 1.25 |" in card
    assert "| other | 7 of 1,200 | 2 | 0.50 |" in card


def test_a_long_history_stays_a_small_picture():
    picture = loss_plot(history(20_000))
    assert picture is not None
    assert len(picture) < 100_000
    assert loss_plot([{"step": 1, "learning_rate": 0.1}]) is None
    assert loss_plot([{"step": 1, "loss": float("nan")}]) is None


def test_a_contract_card_holds_its_report(lifecycle: Lifecycle):
    card = contract_card(lifecycle["contract corpus trials"])
    assert "**green**" in card


def test_the_labels_that_macro_f1_leaves_out_are_named():
    facts = {"metrics": {"macro_f1": 0.5}, "split": "test", "rows": 60, "labels_left_out": ["rare"]}
    assert left_out(facts) == "macro_f1 leaves out labels in no test row and no prediction: rare"
    assert left_out(facts | {"labels_left_out": []}) == ""
    assert left_out(facts | {"metrics": {"accuracy": 0.5}}) == ""
    assert left_out(facts | {"metrics": {"entity_macro_f1": 0.5}}).startswith("entity_macro_f1 lea")
