"""``trace``, ``impact``, ``diff``: a model's texts, a text's models, differences between two."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line
from fourstage.settings import home


def add(verbs: Any) -> None:
    """Add the verbs."""
    trace = verbs.add_parser("trace", help="trace a model version back to every stage and text")
    trace.add_argument("model", metavar="models:/NAME@alias", help="or models:/NAME/VERSION")
    form = trace.add_mutually_exclusive_group()
    add_json(form)
    form.add_argument("--mermaid", action="store_true", help="print a Mermaid diagram")
    form.add_argument("--picture", type=Path, metavar="FILE.png", help="draw it to a file")
    trace.set_defaults(handler=handle_trace)

    impact = verbs.add_parser("impact", help="find the model versions that saw a text")
    impact.add_argument(
        "digest", metavar="DIGEST", help="digest of a corpus, dataset, stage or tokenizer"
    )
    add_json(impact)
    impact.set_defaults(handler=handle_impact)

    diff = verbs.add_parser(
        "diff", help="show the differences between two versions, runs or recipes"
    )
    for name in ("before", "after"):
        help_ = "NAME/2, NAME@alias, the id of an MLflow run, or a recipe"
        diff.add_argument(name, metavar=name.upper(), help=help_)
    add_json(diff)
    diff.set_defaults(handler=handle_diff)


def handle_trace(options: Namespace) -> int:
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


def handle_impact(options: Namespace) -> int:
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


def handle_diff(options: Namespace) -> int:
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
