"""``choose``: finds the recipe that is best for your rows in the minutes you have."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import add_json, add_recipe
from fourstage.command.output import only_this_on_standard_output, print_line, print_table
from fourstage.command.required_servers import require_servers
from fourstage.errors import GateRefused
from fourstage.settings import make_home
from fourstage.terminal import libraries_speak_to, new_log

HELP = "try what would answer your rows best in some minutes, and register it"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    parser.add_argument(
        "--minutes", type=_minutes, default=60.0, metavar="N", help="in all, about; default 60"
    )
    parser.add_argument(
        "--candidate",
        action="append",
        default=[],
        metavar="NAME:PATH=VALUE",
        help="try the recipe under another setting, too; a NAME may come again, with one more",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave a candidate out: as-written, labels-only, no-STAGE, larger, or yours",
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Run the rounds and print what they found; a refused gate is exit code 4."""
    from tasks.comparison.candidates import candidates_of

    given = options.recipe, options.overrides, options.smoke
    candidates_of(*given, options.candidate, options.without)
    require_servers()
    make_home()
    with (
        only_this_on_standard_output(options.json) as print_object,
        libraries_speak_to(new_log("choose")),
    ):
        with prefect_ready():
            from flows.choose import choose
        table = choose(*given, options.minutes, options.candidate, options.without)
        print_object(table)
    if not options.json:
        _print_choice(table)
    gate = table["summary"].get("gate") or {}
    return GateRefused.exit_code if gate.get("decision") == "refuse" else 0


def _print_choice(table: dict[str, Any]) -> None:
    from tasks.comparison.choice_report import CHOSEN, PAGE, round_cells, sentence
    from tasks.comparison.comparison_report import headline

    choice, comparison = table["choice"], table["comparison"]
    print_line(f"{sentence(table)}.\n")
    print_table(*round_cells(choice))
    print_line(f"\nOn the {comparison['split']} rows: {headline(comparison)}")
    print_line(f"The page: {choice['folder']}/{PAGE}")
    print_line(f"The recipe, to run every night: {choice['folder']}/{CHOSEN}")


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 1 <= minutes <= 1e5:
        raise ArgumentTypeError(f"expected minutes from 1 up, got {text[:40]!r}")
    return minutes
