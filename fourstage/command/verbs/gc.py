"""``gc``: free space in the home."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter

from fourstage.command.options import add_json
from fourstage.command.output import print_json, print_line, print_table
from fourstage.settings import home, make_home
from fourstage.terminal import say

KEEP_DAYS = 30.0
HELP = "list or delete what no registered version and no recent run can reach"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--keep",
        type=_days,
        default=KEEP_DAYS,
        metavar="DAYS",
        help=f"keep what was made or used within this many days, or since a run began that is still"
        f" going on; default {KEEP_DAYS:g}",
    )
    parser.add_argument(
        "--delete", action="store_true", help="delete it; without this, only list it"
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """List what may be deleted, and delete it on request."""
    from tasks.registry.garbage import find_waste, remove
    from tasks.store.artifacts import Store
    from tasks.tracking.connection import connect

    make_home()
    store = Store(home(), say=say)
    waste = find_waste(store, connect(), options.keep)
    if options.delete:
        waste = remove(store, waste)
    if options.json:
        entries = [
            {
                "kind": item.kind,
                "name": item.name,
                "path": str(item.path.relative_to(home())),
                "bytes": item.size,
                "why": item.why,
            }
            for item in waste
        ]
        print_json({"deleted": options.delete, "entries": entries})
        return 0
    count, size = Counter[str](), Counter[str]()
    for item in waste:
        count[item.kind] += 1
        size[item.kind] += item.size
    rows = [(kind, f"{count[kind]:,}", f"{size[kind] / 1e6:,.1f}") for kind in sorted(count)]
    if rows:
        print_table(("kind", "entries", "MB"), rows)
        print_line()
    total = f"{len(waste):,} entries, {sum(size.values()) / 1e6:,.1f} MB"
    if options.delete:
        print_line(f"Deleted: {total}.")
    elif waste:
        print_line(f"To delete: {total}. Nothing is deleted yet; add --delete to do so.")
    else:
        print_line("Nothing to delete.")
    return 0


def _days(text: str) -> float:
    try:
        days = float(text.removesuffix("d"))
    except ValueError:
        days = -1.0
    if not 0 <= days < 1e5:
        raise ArgumentTypeError(f"expected a number of days such as 30, got {text[:40]!r}")
    return days
