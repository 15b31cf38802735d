"""``choose``: finds the recipe that is best for your rows in the minutes you have."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fourstage.command.embedded_prefect import prefect_ready
from fourstage.command.options import (
    add_columns,
    add_init,
    add_json,
    add_recipe,
    columns_of,
    minutes,
)
from fourstage.command.output import (
    only_results,
    print_line,
    print_table,
    print_text,
    tell,
)
from fourstage.command.required_servers import require_servers
from fourstage.errors import GateRefused, RecipeError, listed
from fourstage.settings import enter_project, make_home

SHOWN = 3  # files of a source in a message
HELP = "find, in a given time, the recipe that is best on your rows, and register its model"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser, count="?")
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="FILE", help="labelled rows, in place of RECIPE"
    )
    parser.add_argument(
        "--corpus", nargs="+", default=[], metavar="FILE", help="text of the same kind as the rows"
    )
    add_columns(parser)
    add_init(parser)
    parser.add_argument(
        "--project",
        type=Path,
        default=Path("choice"),
        metavar="DIR",
        help="project folder for the recipe and sources made from these files; default: ./choice",
    )
    parser.add_argument(
        "--minutes",
        type=minutes,
        default=60.0,
        metavar="N",
        help="minutes in all, from this command's start; default 60",
    )
    parser.add_argument(
        "--candidate",
        action="append",
        default=[],
        metavar="NAME:PATH=VALUE",
        help="also try the recipe with another setting; repeat a NAME to give it one more setting",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave a candidate out: as-written, labels-only, no-STAGE, from-scratch, counting,"
        " fasttext, wide, wide-labels-only, no-wide, larger, or one of --candidate",
    )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Run the rounds and print what they found; a refused gate is exit code 4."""
    begun = time.time()
    from tasks.comparison.candidates import candidates_of

    if options.rows:
        _enter_project(options)
    elif options.recipe is None:
        raise RecipeError("choose: name a recipe, or give --rows FILE [--corpus FILE]")
    elif options.corpus:
        raise RecipeError("choose: --corpus goes with --rows; a recipe names its own texts")
    elif options.init is not None:
        raise RecipeError("choose: --init goes with --rows; a recipe names its own network")
    elif given_columns := columns_of(options):
        raise RecipeError(
            f"choose: --{next(iter(given_columns))} goes with --rows; a recipe's rows have a source"
            " that says what their columns are"
        )
    given = options.recipe, options.overrides, options.smoke
    candidates_of(*given, options.candidate, options.without)
    require_servers()
    make_home()
    with only_results(options.json, "choose") as print_object:
        with prefect_ready():
            from flows.choose import choose
        table = choose(*given, options.minutes, options.candidate, options.without, begun)
        print_object(table)
    if not options.json:
        _print_choice(table)
    gate = table["summary"].get("gate") or {}
    return GateRefused.exit_code if gate.get("decision") == "refuse" else 0


def _enter_project(options: Namespace) -> None:
    """Go to a project with a recipe for these files, made here unless an earlier start made it.

    Raises:
        RecipeError: A recipe is named, too, the folder is not empty and no project, or it is a
            project of other files, of other columns or of another network.
    """
    from fourstage.command.project import MARKER, check_empty, make_project
    from fourstage.command.proposal import (
        ROWS,
        other_columns,
        other_files,
        other_network,
        propose,
    )

    folder: Path = options.project
    say = tell if options.json else print_text
    columns = columns_of(options)
    if options.recipe is not None:
        raise RecipeError("choose: give a recipe or --rows, not both")
    if (folder / MARKER).is_file():
        if other := other_files(folder, options.corpus, options.rows):
            raise RecipeError(_told(folder, other))
        for name, (named, known) in other_columns(folder, columns).items():
            raise RecipeError(
                f"choose: --{name} {named}, but in {folder} it is {known or 'not set'}; nothing was"
                f" started. Correct {folder / 'sources' / f'{ROWS}.yaml'}, or name another folder"
                " with --project DIR"
            )
        if networks := other_network(folder, options.init):
            named, known = (each or "no network" for each in networks)
            raise RecipeError(
                f"choose: the project in {folder} starts from {known}, and --init names {named};"
                " nothing was started. Name another folder with --project DIR, or go on with the"
                f" project's own network: in {folder}, type `fourstage choose first`"
            )
        say(f"{folder}: goes on with this project; its recipe and sources stay as they are")
    else:
        check_empty(folder)
        more = {"minutes": options.minutes, "init": options.init}
        proposal = propose(options.corpus, options.rows, **columns, **more)
        make_project(folder, proposal.files)
        for told in proposal.told:
            say(told)
    enter_project(folder)
    options.recipe = "first"


def _told(folder: Path, other: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> str:
    """How a project's files differ from those named, and what to do."""
    said = []
    for source, (named, known) in other.items():
        if named:
            said.append(f"{source}: named, but not the project's: {listed(named, SHOWN)}")
        if known:
            said.append(f"{source}: the project's, but not named: {listed(known, SHOWN)}")
    return (
        f"choose: {folder} is a project of other files; nothing was started. {'; '.join(said)}."
        " Name another folder with --project DIR, or go on with the project's own files: in"
        f" {folder}, type `fourstage choose first`"
    )


def _print_choice(table: dict[str, Any]) -> None:
    from tasks.comparison.choice_report import CHOSEN, PAGE, round_cells, sentence, time_taken
    from tasks.comparison.comparison_report import headline

    choice, comparison = table["choice"], table["comparison"]
    print_line(f"{sentence(table)}.\n")
    print_table(*round_cells(choice))
    print_line(f"\nOn the {comparison['split']} rows: {headline(comparison)}")
    print_line(time_taken(choice))
    print_line(f"The page: {choice['folder']}/{PAGE}")
    print_line(f"The recipe, to run every night: {choice['folder']}/{CHOSEN}")
