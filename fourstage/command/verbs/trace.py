"""``trace``: a model version's stages and texts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line
from fourstage.settings import home

HELP = "trace a model version back to every stage and text"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="models:/NAME@alias", help="or models:/NAME/VERSION")
    form = parser.add_mutually_exclusive_group()
    add_json(form)
    form.add_argument("--mermaid", action="store_true", help="print a Mermaid diagram")
    form.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="draw the lineage to a PNG file"
    )


def handle(options: Namespace) -> int:
    """Print the lineage; an incomplete one is an error."""
    from tasks.registry import lineage_views
    from tasks.registry.lineage import trace
    from tasks.tracking.connection import connect

    found = trace(connect(), options.model, home() / "store")
    if options.json:
        print_json(found.to_json())
    elif options.mermaid:
        print_line(lineage_views.mermaid(found))
    elif options.picture:
        options.picture.write_bytes(lineage_views.picture(found))
        print_line(str(options.picture))
    else:
        print_line(lineage_views.text(found))
    return 0
