"""The gate's decision as Markdown."""

from __future__ import annotations

from tasks.registry.gate import Gate
from tasks.reports.tables import markdown_table

OUTCOMES = {
    "promote": "promoted",
    "keep": "the champion already",
    "refuse": "refused",
    "wait": "awaiting approval",
}


def gate_report(gate: Gate, outcome: str = "", reason: str = "") -> str:
    """A gate decision with all checks, failed ones first."""
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
