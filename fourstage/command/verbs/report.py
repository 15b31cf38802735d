"""``report``: prints the report of a data contract."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line, print_table
from fourstage.errors import RecipeError, UnknownNameError
from fourstage.settings import home

if TYPE_CHECKING:
    from tasks.store.artifacts import Artifact

PAGE, TEXT, FACTS = "report.html", "report.md", "report.json"
HELP = "print a contract's report: promises, and what was found"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "contract",
        metavar="NAME",
        nargs="?",
        help="a source, a step or the path of a report; without it, the verdicts of all contracts",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", action="store_true", help="print the path of the report's page")
    form.add_argument("--open", action="store_true", help="open the report's page in a browser")
    add_json(form)


def handle(options: Namespace) -> int:
    """Print a report, or one line per contract."""
    there = _newest()
    if options.contract is None:
        if options.html or options.open:
            raise RecipeError("report: expected a contract's name with --html or --open")
        return _print_verdicts(there, options.json)
    folder = _folder(options.contract, there)
    page = folder / PAGE
    if options.html:
        print_line(str(page))
    elif options.open:
        import webbrowser

        print_line(str(page) if webbrowser.open(page.as_uri()) else f"no browser here; {page}")
    elif options.json:
        print_line((folder / FACTS).read_text(encoding="utf-8"))
    else:
        _print_markdown((folder / TEXT).read_text(encoding="utf-8"))
    return 0


def _newest() -> dict[str, Artifact]:
    """The most recently used contract of each subject."""
    from tasks.store.artifacts import MANIFEST, Store

    used = sorted(
        Store(home()).entries("contract"), key=lambda a: (a.folder / MANIFEST).stat().st_mtime_ns
    )
    return {artifact.name.removeprefix("contract "): artifact for artifact in used}


def _folder(named: str, there: dict[str, Artifact]) -> Path:
    """The folder of a report, given its name or path."""
    name = named.removeprefix("contract ")
    if name in there:
        return there[name].folder
    path = Path(named).expanduser()
    folder = path if path.is_dir() else path.parent
    if path.exists() and all((folder / file).is_file() for file in (PAGE, TEXT, FACTS)):
        return folder
    raise UnknownNameError("report", named, "a contract that has been checked", there)


def _print_verdicts(there: dict[str, Artifact], as_json: bool) -> int:
    facts = ("verdict", "reason", "read", "kept", "quarantined", "removed")
    rows = [
        {"name": name, **{fact: artifact.facts[fact] for fact in facts}}
        for name, artifact in sorted(there.items())
    ]
    if as_json:
        print_json(rows)
    elif rows:
        table = [(row["name"], row["verdict"], row["reason"]) for row in rows]
        print_table(("contract", "verdict", "why"), table)
    else:
        print_line(f"no contract has been checked yet under {home()}")
    return 0


def _print_markdown(text: str) -> None:
    """Print Markdown: rendered at a terminal, plain elsewhere."""
    if not sys.stdout.isatty():
        return print_line(text.rstrip("\n"))
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
