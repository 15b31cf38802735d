"""``new`` and ``fetch``: a project of one's own, and data from where they are published."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line, tell
from fourstage.settings import search_folders


def add(verbs: Any) -> None:
    """Add the verbs."""
    new = verbs.add_parser("new", help="make a project folder with an example that runs")
    new.add_argument("folder", metavar="DIR", type=Path, help="a folder that is new or empty")
    new.set_defaults(handler=handle_new)

    fetch = verbs.add_parser("fetch", help="get a source's files, check them and keep them")
    fetch.add_argument("source", metavar="NAME", help="name of a source (`fourstage list sources`)")
    add_json(fetch)
    fetch.set_defaults(handler=handle_fetch)


def handle_new(options: Namespace) -> int:
    """Make a project and say what to type next."""
    from fourstage.command.project import make_project

    made = make_project(options.folder)
    print_line(f"made {options.folder} with {len(made)} files. Next:")
    print_line(f"  cd {options.folder}")
    print_line("  fourstage plan recipes/first.yaml")
    print_line("  fourstage run recipes/first.yaml")
    return 0


def handle_fetch(options: Namespace) -> int:
    """Fetch a source and say where its files lie."""
    from corpora.fetch import fetch
    from data_contracts.sources import load_source

    files = [str(file) for file in fetch(load_source(options.source, search_folders()), tell)]
    if options.json:
        print_json({"source": options.source, "files": files})
    else:
        for file in files:
            print_line(file)
    return 0
