"""Cards and tables: self-contained Markdown."""

from __future__ import annotations

import base64
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from tasks.registry.lineage import Hop, Trace
from tasks.registry.register_model import Version
from tasks.reports.cards import (
    StageRow,
    brackets,
    contract_card,
    left_out,
    lineage_diagram,
    markdown_table,
    stage_card,
    stage_table,
    stage_table_for_terminal,
)
from tasks.reports.plots import LARGEST, loss_plot
from tests.tasks.lifecycle import Lifecycle, history

ROWS = [
    StageRow("general", "trained", 2000, 8100.4, {"encyclopedia": 4.21, "trials": 5.0}, 0.41),
    StageRow(
        "domain",
        "reused",
        1000,
        8300.0,
        {"trials": 3.9},
        0.45,
        {"loss on trials": -1.1, "macro_f1": 0.04},
    ),
    StageRow("task", "skipped"),
]


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
    card = stage_card(stage, reused=False, labelled=counts)
    assert "1,190 of 1,200" in card
    assert "contradictory rows" in card


def test_a_long_history_stays_a_small_picture():
    picture = loss_plot(history(20_000))
    assert picture is not None
    assert len(picture) < 100_000
    assert loss_plot([{"step": 1, "learning_rate": 0.1}]) is None
    assert loss_plot([{"step": 1, "loss": float("nan")}]) is None


def test_a_contract_card_holds_its_report(lifecycle: Lifecycle):
    card = contract_card(lifecycle["contract corpus trials"])
    assert "**green**" in card


def test_the_closing_table_reads_the_same_in_markdown_and_terminal():
    markdown = stage_table(ROWS, "macro_f1")
    stream = StringIO()
    Console(file=stream, width=160).print(stage_table_for_terminal(ROWS, "macro_f1"))
    for text in (markdown, stream.getvalue()):
        for part in (
            "general",
            "8,100",
            "4.21",
            "loss on trials",
            "(-1.10)",
            "0.450 (+0.040)",
            "skipped",
        ):
            assert part in text
    assert markdown_table(("a",), [("x|y\nz",)]).endswith("| x\\|y z |")


def test_a_recipe_without_labels_has_no_line_for_their_metric_and_its_losses_are_explained():
    rows = [replace(row, metric=None) for row in ROWS]
    assert stage_table(rows).splitlines()[-1].startswith("| loss on trials | ")
    assert brackets(rows) == (
        "in brackets: against the stage before, a first loss against guessing by frequency"
    )
    assert "macro_f1 on the dev rows" in brackets(ROWS, "macro_f1")
    measured = [replace(row, errors={"trials": 0.02}) for row in ROWS]
    assert "; standard error of a loss: up to 0.02 on trials; macro_f1" in brackets(
        measured, "macro_f1"
    )
    assert brackets([replace(row, gained={}) for row in rows]) == ""


def test_a_lineage_diagram_is_a_picture_and_mermaid(
    lifecycle: Lifecycle, home: Path, saved_model: Path
):
    from tasks.store.ancestry import gather

    whole = Lifecycle(home, 1, saved_model)
    ancestry = gather(whole.store.root, whole["package"])
    hops = tuple(Hop(manifest, None, None, ("store",)) for manifest in ancestry.manifests.values())
    version = Version("relations", 2, ancestry.root, None, None, ("champion",), {})
    diagram = lineage_diagram(Trace(version, hops, "store"))
    assert "data:image/png;base64," in diagram
    assert "```mermaid\nflowchart TD" in diagram
    assert "stage finetune" in diagram
    assert len(diagram) < LARGEST


def test_the_labels_that_macro_f1_leaves_out_are_named():
    facts = {"metrics": {"macro_f1": 0.5}, "split": "test", "rows": 60, "labels_left_out": ["rare"]}
    assert left_out(facts) == "macro_f1 leaves out labels in no test row and no prediction: rare"
    assert left_out(facts | {"labels_left_out": []}) == ""
    assert left_out(facts | {"metrics": {"accuracy": 0.5}}) == ""
