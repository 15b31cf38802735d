"""``fetch``: downloads published data."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line, tell
from fourstage.settings import search_folders

HELP = "download a source's files and verify them"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "source", metavar="NAME", help="name of a source (`fourstage list sources`)"
    )
    add_json(parser)


def handle(options: Namespace) -> int:
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
