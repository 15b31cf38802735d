"""``compare``: compares recipes over seeds."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import add_accept_code_change, add_json, add_recipe
from fourstage.command.output import only_results, print_line, print_table
from fourstage.command.required_servers import require_servers
from fourstage.settings import make_home

HELP = "compare recipes over seeds, on equal terms"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser, count="+")
    add_json(parser)
    parser.add_argument(
        "--seeds", type=_seeds, metavar="1,2,3", help="seeds in place of the recipes' own"
    )
    parser.add_argument(
        "--equal",
        choices=("tokens", "time"),
        help="scale pre-training budgets so that every recipe uses as many tokens, or as much time,"
        " as the first; default: budgets as written",
    )
    parser.add_argument(
        "--contrast",
        action="append",
        metavar="A:B",
        help="test A against B, by name; one may be cheap_baseline. By default every recipe against"
        " the first and against the cheap baseline. Verdicts are corrected for the number of"
        " contrasts",
    )
    parser.add_argument(
        "--variant",
        action="append",
        metavar="NAME:PATH=VALUE",
        help="compare each RECIPE also with a variant of itself that has another setting, called"
        " RECIPE-NAME: no-domain:stages.domain= leaves stage domain out. Repeat a NAME to give it"
        " one more setting",
    )
    add_accept_code_change(parser)


def handle(options: Namespace) -> int:
    """Run recipes over seeds and print the table."""
    from tasks.planning.plan import resolve_recipe

    for recipe in options.recipe:
        resolve_recipe(recipe, options.overrides, options.smoke)
    require_servers()
    make_home()
    with only_results(options.json, "compare") as print_object:
        with prefect_ready():
            from flows.compare import compare
        table = compare(
            options.recipe,
            options.overrides,
            options.smoke,
            options.seeds,
            options.equal,
            options.contrast,
            options.variant,
            options.accept_code_change,
        )
        print_object(table)
    if not options.json:
        _print_comparison(table)
    return 0


def _print_comparison(table: dict[str, Any]) -> None:
    from tasks.comparison.comparison_report import cells_for, explanation, headline

    print_line(headline(table))
    for title, (head, rows) in cells_for(table):
        print_line(f"\n{title}" if title else "")
        print_table(head, rows)
    print_line(f"\n{explanation(table)}\n\nKept in {table['folder']}")


def _seeds(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) < 2**31 for part in parts):
        raise ArgumentTypeError(f"expected whole numbers such as 1,2,3, got {text[:40]!r}")
    seeds = [int(part) for part in parts]
    if len(set(seeds)) < len(seeds):
        raise ArgumentTypeError(f"expected different seeds, got {text[:40]!r}")
    return seeds
