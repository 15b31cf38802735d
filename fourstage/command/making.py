"""``new`` and ``fetch``: creates a project, downloads published data."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line, print_text, tell
from fourstage.errors import RecipeError
from fourstage.settings import search_folders


def add(verbs: Any) -> None:
    """Add the verbs."""
    new = verbs.add_parser(
        "new", help="create a project folder for your files, or with an example that runs"
    )
    new.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    new.add_argument(
        "--corpus", nargs="+", default=[], metavar="FILE", help="text: files, folders or patterns"
    )
    new.add_argument(
        "--rows", nargs="+", default=[], metavar="FILE", help="labelled rows: files or patterns"
    )
    new.add_argument(
        "--minutes", type=_minutes, metavar="N", help="minutes that a run may take; default 10"
    )
    new.add_argument("--text", metavar="COLUMN", help="the text column, if the one found is wrong")
    new.add_argument(
        "--label", metavar="COLUMN", help="the label column, if the one found is wrong"
    )
    new.add_argument("--language", metavar="CODE", help="language of the text, such as en or zh")
    new.set_defaults(handler=handle_new)

    fetch = verbs.add_parser("fetch", help="download a source's files and verify them")
    fetch.add_argument("source", metavar="NAME", help="name of a source (`fourstage list sources`)")
    add_json(fetch)
    fetch.set_defaults(handler=handle_fetch)


def handle_new(options: Namespace) -> int:
    """Create a project; print what was found and what to type next."""
    from fourstage.command.project import check_empty, make_project
    from fourstage.command.proposal import propose, propose_example

    check_empty(options.folder)
    given = {n: getattr(options, n) for n in ("minutes", "text", "label", "language")}
    if options.corpus or options.rows:
        proposal = propose(options.corpus, options.rows, **given)
    else:
        for name, value in given.items():
            if value is not None:
                raise RecipeError(f"new: --{name} describes files; give --corpus or --rows, too")
        proposal = propose_example()
    made = make_project(options.folder, proposal.files)
    for said in proposal.told:
        print_text(said)
    print_line(f"\nmade {options.folder} with {len(made)} files. Look at recipes/first.yaml, then:")
    print_line(f"  cd {shlex.quote(str(options.folder))}")
    print_line("  fourstage plan first")
    print_line("  fourstage run first")
    return 0


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 1 <= minutes <= 1e5:
        raise ArgumentTypeError(f"expected minutes from 1 up, got {text[:40]!r}")
    return minutes


def handle_fetch(options: Namespace) -> int:
    """Fetch a source and print where its files are."""
    from corpora.fetch import fetch
    from data_contracts.sources import load_source

    files = [str(file) for file in fetch(load_source(options.source, search_folders()), tell)]
    if options.json:
        print_json({"source": options.source, "files": files})
    else:
        for file in files:
            print_line(file)
    return 0
