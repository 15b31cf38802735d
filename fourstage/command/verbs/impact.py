"""``impact``: the model versions that saw a text."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line
from fourstage.settings import home

HELP = "find the model versions that saw a text"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "digest", metavar="DIGEST", help="digest of a corpus, dataset, stage or tokenizer"
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Print each version that saw the text."""
    from tasks.registry.lineage import impact
    from tasks.tracking.connection import connect

    found = impact(connect(), options.digest, home() / "store")
    if options.json:
        print_json([one.to_json() for one in found])
        return 0
    for one in found:
        aliases = "".join(f" @{alias}" for alias in one.version.aliases)
        name = f"{one.version.name} version {one.version.number}{aliases}"
        print_line(f"{name}: {one.through} {one.digest[:12]}")
    if not found:
        print_line("no registered version saw it")
    return 0
