"""``diff``: the differences between two versions, runs or recipes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line
from fourstage.settings import home

HELP = "show the differences between two versions, runs or recipes"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    for name in ("before", "after"):
        help_ = "NAME/2, NAME@alias, the id of an MLflow run, or a recipe"
        parser.add_argument(name, metavar=name.upper(), help=help_)
    add_json(parser)


def handle(options: Namespace) -> int:
    """Print the differences."""
    from tasks.comparison.diff import diff, text
    from tasks.store.artifacts import Store
    from tasks.tracking.connection import connect

    found = diff(connect(), Store(home()), options.before, options.after)
    if options.json:
        print_json(found.to_json())
    else:
        print_line(text(found))
    return 0
