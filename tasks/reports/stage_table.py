"""The stage table: cost and gain of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasks.reports.tables import markdown_table, number

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class StageRow:
    """A stage in the stage table.

    Attributes:
        stage: Its name.
        status: ``trained``, ``imported``, ``reused`` or ``skipped``.
        steps: Optimizer updates.
        tokens_per_second: Training speed.
        heldout: Held-out loss after it, by corpus.
        metric: Task metric after it, if measured.
        gained: Change from the stage before, by row of the table: ``loss on CORPUS`` or the
            metric's name. The first loss is compared with the unigram loss.
        errors: Standard errors of the losses, by corpus, if there was enough text.
    """

    stage: str
    status: str
    steps: int | None = None
    tokens_per_second: float | None = None
    heldout: Mapping[str, float] = field(default_factory=dict)
    metric: float | None = None
    gained: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


def stage_table(rows: Sequence[StageRow], metric: str = "") -> str:
    """The stage table as Markdown, with a column per stage so that it fits on a page.

    Args:
        rows: The stages in order.
        metric: Name of the task metric; empty if the recipe has no labels.
    """
    return markdown_table(*_stage_cells(rows, metric))


def stage_table_for_terminal(rows: Sequence[StageRow], metric: str = "") -> Table:
    """The stage table for `rich.print`."""
    from rich.table import Table

    head, body = _stage_cells(rows, metric)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i else "left", no_wrap=not i)
    for cells in body:
        table.add_row(*cells)
    return table


def brackets(rows: Sequence[StageRow], metric: str = "") -> str:
    """Legend of the stage table; empty if it needs none."""
    said = []
    if any(row.gained for row in rows):
        said.append(
            "in brackets: against the stage before, a first loss against guessing by frequency"
        )
    errors: dict[str, float] = {}
    for row in rows:
        for name, error in row.errors.items():
            errors[name] = max(error, errors.get(name, 0.0))
    if errors:
        told = ", ".join(f"{error:.2f} on {name}" for name, error in errors.items())
        said.append(f"standard error of a loss: up to {told}")
    if metric and said:
        probed = sum(row.metric is not None for row in rows) > 1
        before = ", before finetune a linear probe's on frozen features" if probed else ""
        said.append(f"{metric} on the dev rows{before}")
    return "; ".join(said)


def _stage_cells(
    rows: Sequence[StageRow], metric: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows, with each stage's change in brackets."""
    losses = {f"loss on {c}": c for c in dict.fromkeys(c for row in rows for c in row.heldout)}

    def measured(name: str, row: StageRow, value: float | None, digits: int) -> str:
        if value is None:
            return "–"
        change = row.gained.get(name)
        said = f"{value:.{digits}f}"
        return said if change is None else f"{said} ({change:+.{digits}f})"

    body = [
        ("status", *(row.status for row in rows)),
        ("steps", *(number(row.steps) for row in rows)),
        ("tokens/s", *(number(row.tokens_per_second or None) for row in rows)),
    ]
    body += [
        (name, *(measured(name, row, row.heldout.get(corpus), 2) for row in rows))
        for name, corpus in losses.items()
    ]
    if metric:
        body.append((metric, *(measured(metric, row, row.metric, 3) for row in rows)))
    return ("stage", *(row.stage for row in rows)), body


def stage_rows(summary: Mapping[str, Any]) -> list[StageRow]:
    """The stages of a run's summary, for the stage table."""
    return [
        StageRow(
            stage=stage["stage"],
            status=stage["status"],
            steps=stage.get("steps"),
            tokens_per_second=stage.get("tokens_per_second"),
            heldout=stage.get("heldout_loss", {}),
            errors=stage.get("heldout_error", {}),
            metric=(stage.get("task_metric") or {}).get("value"),
            gained=stage.get("gained", {}),
        )
        for stage in summary["stages"]
    ]
