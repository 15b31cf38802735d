"""``new``: creates a project."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fourstage.command.options import add_columns, add_init, columns_of, minutes
from fourstage.command.output import print_line, print_text
from fourstage.errors import RecipeError

HELP = "create a project folder for your files, or with an example that runs"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    parser.add_argument(
        "--corpus", nargs="+", default=[], metavar="FILE", help="text: files, folders or patterns"
    )
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="FILE", help="labelled rows: files or patterns"
    )
    parser.add_argument(
        "--minutes", type=minutes, metavar="N", help="minutes that a run may take; default 10"
    )
    add_columns(parser)
    add_init(parser)


def handle(options: Namespace) -> int:
    """Create a project; print what was found and what to type next."""
    from fourstage.command.project import check_empty, make_project
    from fourstage.command.proposal import propose, propose_example

    check_empty(options.folder)
    given = columns_of(options)
    more = {name: getattr(options, name) for name in ("minutes", "init")}
    given |= {name: value for name, value in more.items() if value is not None}
    if options.corpus or options.rows:
        proposal = propose(options.corpus, options.rows, **given)
    else:
        for name in given:
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
