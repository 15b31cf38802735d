"""Cards and tables as Markdown: a stage, a contract, the gate, the lineage, the closing table.

Every function takes plain facts and returns text; Prefect (`pages.py`) and MLflow only carry it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data_contracts.verdict import printable
from fourstage.errors import listed
from models.stage_format import HISTORY, NETWORK
from tasks.registry.gate import Gate
from tasks.steps.start import made_as
from tasks.store.artifacts import NOTES, Artifact
from tasks.store.steps import MOST_NAMED

if TYPE_CHECKING:
    from rich.table import Table

    from tasks.registry.lineage import Trace


OUTCOMES = {
    "promote": "promoted",
    "keep": "the champion already",
    "refuse": "refused",
    "wait": "awaiting approval",
}


@dataclass(frozen=True)
class StageRow:
    """A stage's line in the closing table.

    Attributes:
        stage: Its name.
        status: ``trained``, ``imported``, ``reused`` or ``skipped``.
        steps: Optimizer updates.
        tokens_per_second: Measured while it trained.
        heldout: Held-out loss after it, by corpus.
        metric: The task metric after it, where one was measured.
        gained: What it changed against the stage before, by row of the table: ``loss on CORPUS`` or
            the metric's name; a first loss against guessing by frequency.
        errors: Standard errors of the losses, by corpus, where there was text enough.
    """

    stage: str
    status: str
    steps: int | None = None
    tokens_per_second: float | None = None
    heldout: Mapping[str, float] = field(default_factory=dict)
    metric: float | None = None
    gained: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


def stage_card(
    artifact: Artifact,
    reused: bool,
    links: Mapping[str, str | None] | None = None,
    before: Mapping[str, float] | None = None,
    after: Mapping[str, float] | None = None,
    labelled: Mapping[str, Any] | None = None,
) -> str:
    """A stage at a glance: key, cost, what changed on held-out text, and its loss.

    Args:
        artifact: The stage.
        reused: Whether this run found it in the store.
        links: Address by name, such as ``{"MLflow run": "http://…"}``; None where nobody shows it.
        before: Held-out loss by corpus before the stage.
        after: The same after it.
        labelled: Counts of its dataset; None where it has none.
    """
    made, notes = artifact.facts, artifact.notes
    git = notes.get("git", {})
    commit = str(git.get("commit") or "no git checkout")[:12] + (
        " and edits" if git.get("dirty") else ""
    )
    facts = {
        "status": "reused" if reused else made_as(artifact),
        "key": f"`{artifact.key[:12]}`",
        "weights": f"`{artifact.outputs.get(NETWORK, artifact.digest)[:12]}`",
        "steps": _number(made.get("steps")),
        "tokens": _number(made.get("tokens")),
        "seconds": _number(notes.get("seconds"), 1),
        "tokens/s": _number(notes.get("tokens_per_second") or None),
        "code": commit,
    }
    if labelled:
        facts["rows kept"] = f"{_number(labelled['kept'])} of {_number(labelled['read'])}"
        facts["contradictory rows"] = _number(labelled["contradictory"]["rows"])
    parts = [f"### {artifact.name}", _pairs(facts)]
    if after:
        rows = [
            (
                corpus,
                _number((before or {}).get(corpus), 2),
                _number(value, 2),
                _change((before or {}).get(corpus), value),
            )
            for corpus, value in sorted(after.items())
        ]
        parts.append(markdown_table(("held-out loss", "before", "after", "change"), rows))
    if picture := _loss_picture(artifact):
        parts.append(f"![Loss over steps]({picture})")
    if shown := _links(links):
        parts.append(shown)
    return "\n\n".join(parts) + "\n"


def gate_report(gate: Gate, outcome: str = "", reason: str = "") -> str:
    """A decision with every check, failed ones first."""
    decision = outcome or OUTCOMES[gate.decision]
    match gate.champion_version:
        case None:
            against = "There is no champion to compare with."
        case gate.version:
            against = "There is no other champion to compare with."
        case number:
            against = f"Compared with champion version {number}."
    said = (reason or gate.reason).rstrip(".")
    rows = [
        (
            "passed" if check.passed else "**failed**",
            check.name,
            check.expected,
            check.observed,
            check.says,
        )
        for check in sorted(gate.checks, key=lambda check: check.passed)
    ]
    parts = [
        f"### {gate.name} version {gate.version}: {decision}",
        f"{against} {said[:1].upper()}{said[1:]}.",
        markdown_table(("", "check", "expected", "found", ""), rows),
        *(f"> Warning: {warning}" for warning in gate.warnings),
    ]
    return "\n\n".join(parts) + "\n"


def left_out(facts: Mapping[str, Any]) -> str:
    """Which labels an evaluation's macro-F1 leaves out; empty where it has none or leaves none."""
    if "macro_f1" not in facts["metrics"] or not facts["labels_left_out"]:
        return ""
    names = listed(list(map(printable, facts["labels_left_out"])), MOST_NAMED)
    return f"macro_f1 leaves out labels in no {facts['split']} row and no prediction: {names}"


def lineage_diagram(trace: Trace) -> str:
    """Where a version comes from: a picture for pages that draw no Mermaid, and the Mermaid."""
    from tasks.registry.lineage_views import mermaid, picture
    from tasks.reports.plots import data_address

    address = data_address(picture(trace))
    return (
        f"### Where {trace.version.name} version {trace.version.number} comes from\n\n"
        + (f"![Lineage]({address})\n\n" if address else "")
        + f"```mermaid\n{mermaid(trace)}\n```\n"
    )


def contract_card(contract: Artifact, links: Mapping[str, str | None] | None = None) -> str:
    """A contract's verdict, its figures and its report."""
    facts = contract.facts
    shown = {
        "verdict": f"**{facts.get('verdict')}**",
        **{name: _number(facts.get(name)) for name in ("read", "kept", "quarantined", "removed")},
    }
    parts = [f"### {contract.name}", _pairs(shown)]
    if facts.get("reason"):
        parts.append(str(facts["reason"]))
    if "report.md" in contract.outputs:
        parts.append(contract.path("report.md").read_text(encoding="utf-8"))
    if addresses := _links(links):
        parts.append(addresses)
    return "\n\n".join(parts) + "\n"


def stage_table(rows: Sequence[StageRow], metric: str = "") -> str:
    """The closing table as Markdown: a column a stage, so that it fits on a page.

    Args:
        rows: The stages in order.
        metric: Name of the task metric; empty where the recipe has no labels.
    """
    return markdown_table(*_stage_cells(rows, metric))


def stage_table_for_terminal(rows: Sequence[StageRow], metric: str = "") -> Table:
    """The closing table for `rich.print`."""
    from rich.table import Table

    head, body = _stage_cells(rows, metric)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i else "left", no_wrap=not i)
    for cells in body:
        table.add_row(*cells)
    return table


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in r) for r in rows]
    return "\n".join(f"| {line} |" for line in lines)


def brackets(rows: Sequence[StageRow], metric: str = "") -> str:
    """What the closing table's figures are; empty where it has none."""
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
        said.append(
            f"{metric} on the dev rows, before finetune a linear probe's on frozen features"
        )
    return "; ".join(said)


def _stage_cells(
    rows: Sequence[StageRow], metric: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and lines; in brackets what a stage changed."""
    losses = {f"loss on {c}": c for c in dict.fromkeys(c for row in rows for c in row.heldout)}

    def measured(name: str, row: StageRow, value: float | None, digits: int) -> str:
        if value is None:
            return "–"
        change = row.gained.get(name)
        said = f"{value:.{digits}f}"
        return said if change is None else f"{said} ({change:+.{digits}f})"

    body = [
        ("status", *(row.status for row in rows)),
        ("steps", *(_number(row.steps) for row in rows)),
        ("tokens/s", *(_number(row.tokens_per_second or None) for row in rows)),
    ]
    body += [
        (name, *(measured(name, row, row.heldout.get(corpus), 2) for row in rows))
        for name, corpus in losses.items()
    ]
    if metric:
        body.append((metric, *(measured(metric, row, row.metric, 3) for row in rows)))
    return ("stage", *(row.stage for row in rows)), body


def _loss_picture(artifact: Artifact) -> str | None:
    from tasks.reports.plots import data_address, loss_plot

    path = artifact.folder / NOTES / HISTORY
    if not path.is_file():
        return None
    picture = loss_plot(json.loads(path.read_text(encoding="utf-8")))
    return data_address(picture) if picture else None


def _pairs(facts: Mapping[str, str]) -> str:
    return markdown_table(tuple(facts), [tuple(facts.values())])


def _links(links: Mapping[str, str | None] | None) -> str:
    return " · ".join(f"[{name}]({address})" for name, address in (links or {}).items() if address)


def _number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _change(before: float | None, after: float) -> str:
    return "–" if before is None else f"{after - before:+.2f}"
