"""The closing table, in Markdown and at a terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from tasks.reports.stage_table import StageRow, brackets, stage_table, stage_table_for_terminal
from tasks.reports.tables import markdown_table

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


def test_words_that_look_like_tags_are_seen_on_a_page():
    cells = ("<unk> 0.51, </s> 0.42", "label/<none>", "`name<TAB>phrase`", r"\`<img>` 1 < 2")
    assert markdown_table(("a", "b", "c", "d"), [cells]).splitlines()[-1] == (
        r"| &lt;unk> 0.51, &lt;/s> 0.42 | label/&lt;none> | `name<TAB>phrase` | \`&lt;img>` 1 < 2 |"
    )


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
