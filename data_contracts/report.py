"""Renders a report: as one self-contained HTML page, and as Markdown for Prefect and MLflow.

The page loads nothing, runs no script and contains no time, so that the same report is the same
bytes, opens offline and prints well. Ids and labels are the only words from the data; both are
escaped, as is every other value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from data_contracts.verdict import NUM_SHOWN_IDS, Report, Result, ids_text, percent, printable

_HEADLINES = {
    "green": "The contract is kept",
    "amber": "The contract is kept, with warnings",
    "red": "The contract is broken",
}
_MARKS = {"green": "✓", "amber": "!", "red": "✕"}
# Worst first, so that readers see at once what is wrong.
_SYMBOLS = {
    "broken": "✕",
    "not evaluated": "?",
    "quarantined": "⊘",
    "warning": "!",
    "noted": "i",
    "no reference yet": "…",
    "kept": "✓",
}
_ORDER = tuple(_SYMBOLS)
# Not "not evaluated": there, nothing is known about the data that the remedy could fix.
_NEED_ACTION = ("broken", "quarantined", "warning")


def state(result: Result) -> str:
    """The result of a promise in one word: what happened, not only whether it passed."""
    if result.status == "passed":
        return "kept"
    if result.status == "not_evaluated":
        return "not evaluated"
    if result.status == "no_reference":
        return "no reference yet"
    if result.severity == "critical":
        return "quarantined" if result.level == "row" else "broken"
    return "warning" if result.severity == "warning" else "noted"


def to_markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    return _rendered("report.md.jinja", report, _in_markdown, autoescape=False)


def to_html(report: Report) -> str:
    """The report as one self-contained page: light and dark, narrow and wide, screen and paper."""
    return _rendered("report.html.jinja", report, _in_html, autoescape=True)


def _rendered(
    template: str, report: Report, finalize: Callable[[Any], Any], autoescape: bool
) -> str:
    """A template beside this file, filled in; `finalize` sees every value that goes into it."""
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=autoescape,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return pages.get_template(template).render(
        report=report,
        splits=list(dict.fromkeys(s for numbers in report.answers.values() for s in numbers)),
        mark=_MARKS[report.verdict],
        headline=_HEADLINES[report.verdict],
        symbols=_SYMBOLS,
        states=Counter(map(state, report.results)),
        results=sorted(report.results, key=lambda result: _ORDER.index(state(result))),
        state=state,
        remedy=lambda result: result.remedy if state(result) in _NEED_ACTION else "",
        quarantined_by=lambda reason: _quarantined_by(report, reason),
        ids_text=ids_text,
        percent=percent,
    )


def _quarantined_by(report: Report, reason: str) -> tuple[str, ...]:
    ids = [row_id for row_id, reasons in report.quarantined.items() if reason in reasons]
    return tuple(ids[:NUM_SHOWN_IDS])


def _in_html(value: Any) -> Any:
    if hasattr(value, "__html__"):  # of a macro, whose values were escaped
        return value
    # Keep a number and its % on one line.
    return _shown(value).replace(" %", "\N{NO-BREAK SPACE}%")


def _in_markdown(value: Any) -> str:
    """A value escaped for a table cell in Markdown."""
    escaped = _shown(value).replace("&", "&amp;").replace("<", "&lt;")
    for mark in "\\`*[]|":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else printable(value, longest=600)
